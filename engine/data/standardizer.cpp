#include "engine/data/standardizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/check.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kColumns = 256;  // that are measured together

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
  bool constant = true;  // seen in the values: a rounded mean would give it a variance above zero
};

// Moments of columns [begin, end) in which values are missing, over those that are there: two
// passes, sums in row order.
void column_moments_of_present(const Dataset& dataset, std::span<const std::int32_t> rows,
                               std::int64_t begin, std::int64_t end, Moments* moments) {
  for (std::int64_t column = begin; column < end; ++column) {
    Moments& each = moments[column] = {};
    std::int64_t count = 0;
    float first = 0.0f, x = 0.0f;
    for (std::int32_t row : rows) {
      dataset.gather(row, column, column + 1, &x);
      if (std::isnan(x)) continue;
      if (count++ == 0) first = x;
      each.constant = each.constant && x == first;
      each.mean += static_cast<double>(x);
    }
    if (count == 0) continue;
    each.mean /= static_cast<double>(count);
    for (std::int32_t row : rows) {
      dataset.gather(row, column, column + 1, &x);
      if (std::isnan(x)) continue;
      const double d = static_cast<double>(x) - each.mean;
      each.variance += d * d / static_cast<double>(count);
    }
  }
}

// The values that are measured: those of these rows, on this scale.
struct Sample {
  const Dataset& dataset;
  std::span<const std::int32_t> rows;
  PixelScale pixels;

  void gather(std::int32_t row, std::int64_t begin, std::int64_t end, float* out) const {
    dataset.gather(row, begin, end, out);
    if (pixels == PixelScale::kSquareRoot) kernels().layers.square_roots(out, end - begin);
  }
};

// Calls body(x) with columns [begin, end) of each row, in order.
template <typename Body>
void for_each_piece(const Sample& sample, std::int64_t begin, std::int64_t end, const Body& body) {
  std::array<float, kColumns> values{};
  for (std::int32_t row : sample.rows) {
    sample.gather(row, begin, end, values.data());
    body(values.data());
  }
}

// Moments of columns [begin, end) over the rows: two passes, sums in row order.
void column_moments(const Sample& sample, std::int64_t begin, std::int64_t end, Moments* moments) {
  const std::int64_t n = end - begin;
  const auto count = static_cast<double>(sample.rows.size());
  std::array<double, kColumns> means{}, squares{};
  std::array<float, kColumns> first{};
  std::array<std::int32_t, kColumns> differs{};
  sample.gather(sample.rows[0], begin, end, first.data());
  for_each_piece(sample, begin, end, [&](const float* x) {
    kernels().reductions.add_to_sums(means.data(), x, n, 1, n);
    for (std::size_t j = 0; j < kColumns; ++j) differs[j] |= x[j] != first[j];
  });
  for (double& mean : means) mean /= count;
  for_each_piece(sample, begin, end, [&](const float* x) {
    kernels().reductions.add_squares_around(squares.data(), x, n, means.data(), 1, n);
  });
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    moments[begin + j] = {means[at], squares[at] / count, differs[at] == 0};
  }
}

// All columns as one: the mean of the means, and the law of total variance.
Moments pool(const Dataset& dataset, std::int32_t first_row, const std::vector<Moments>& columns) {
  std::vector<float> first(static_cast<std::size_t>(dataset.features));
  dataset.gather(first_row, first.data());
  const auto n = static_cast<double>(columns.size());
  Moments all;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    all.mean += columns[j].mean / n;
    all.constant = all.constant && columns[j].constant && first[j] == first[0];
  }
  for (const Moments& column : columns) {
    const double d = column.mean - all.mean;
    all.variance += (column.variance + d * d) / n;
  }
  return all;
}

float inverse_std(const Moments& moments) {
  if (moments.constant) return 1.0f;
  const double inverse = 1.0 / std::sqrt(moments.variance);
  return inverse <= std::numeric_limits<float>::max() ? static_cast<float>(inverse) : 1.0f;
}

}  // namespace

PixelScale parse_pixel_scale(const std::string& text) {
  if (text == "linear") return PixelScale::kLinear;
  check(text == "sqrt", "pixels: '", text, "' found, linear or sqrt expected");
  return PixelScale::kSquareRoot;
}

const char* to_text(PixelScale scale) {
  return scale == PixelScale::kSquareRoot ? "sqrt" : "linear";
}

Standardizer Standardizer::fit(const Dataset& dataset, std::span<const std::int32_t> rows,
                               PixelScale pixels) {
  check(!rows.empty(), "Standardizer: no training rows of ", dataset.name,
        " given, at least one needed");
  check(pixels == PixelScale::kLinear || dataset.has_byte_pixels(), "pixels: '", dataset.name,
        "' holds no pixels of 8 bits, of which a square root could be taken; leave sqrt out");
  if (dataset.is_text()) return {{0.0f}, {1.0f}};  // numbers of tokens are left as they are
  std::vector<Moments> columns(static_cast<std::size_t>(dataset.features));
  parallel_ranges(dataset.features, kColumns, [&](std::int64_t begin, std::int64_t end) {
    if (dataset.has_missing) {
      column_moments_of_present(dataset, rows, begin, end, columns.data());
    } else {
      column_moments({dataset, rows, pixels}, begin, end, columns.data());
    }
  });
  if (dataset.is_image()) columns = {pool(dataset, rows[0], columns)};
  std::vector<float> means, inverse_stds;
  for (const Moments& column : columns) {
    means.push_back(static_cast<float>(column.mean));
    inverse_stds.push_back(inverse_std(column));
  }
  return {std::move(means), std::move(inverse_stds), pixels};
}

Standardizer::Standardizer(std::vector<float> means, std::vector<float> inverse_stds,
                           PixelScale pixels)
    : means_(std::move(means)), inverse_stds_(std::move(inverse_stds)), pixels_(pixels) {
  check(!means_.empty() && means_.size() == inverse_stds_.size(), "Standardizer: ", means_.size(),
        " means and ", inverse_stds_.size(), " inverse deviations found, the same number expected");
  const auto finite = [](float x) { return std::isfinite(x); };
  check(std::all_of(means_.begin(), means_.end(), finite) &&
            std::all_of(inverse_stds_.begin(), inverse_stds_.end(), finite),
        "Standardizer: all means and inverse deviations must be finite numbers");
}

void Standardizer::check_features(std::int64_t features) const {
  const auto size = static_cast<std::int64_t>(means_.size());
  check(size == 1 || size == features, "Standardizer: fitted to ", size, " features, the data has ",
        features, "; use the data set that the model was trained on");
}

void Standardizer::fill(std::span<float> row) const {
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (std::isnan(row[j])) row[j] = means_.size() == 1 ? means_[0] : means_[j];
  }
}

void Standardizer::apply(std::span<float> row) const {
  if (pixels_ == PixelScale::kSquareRoot) {
    kernels().layers.square_roots(row.data(), static_cast<std::int64_t>(row.size()));
  }
  kernels().layers.standardize_features(row.data(), means_.data(), inverse_stds_.data(),
                                        means_.size() == 1, static_cast<std::int64_t>(row.size()));
}

}  // namespace tritgrad
