#include "engine/standardizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.h"
#include "engine/parallel.h"

namespace tritgrad {
namespace {

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
  bool constant = true;  // seen in the values: a rounded mean would give it a variance above zero
};

// Moments of columns [begin, end) over the rows: two passes, sums in row order.
template <typename T>
void column_moments(const Dataset& dataset, std::span<const std::int32_t> rows, std::int64_t begin,
                    std::int64_t end, Moments* moments) {
  const T* values = dataset.values.as<T>();
  const auto n = static_cast<double>(rows.size());
  const T* first = values + rows[0] * dataset.features;
  for (std::int32_t row : rows) {
    const T* x = values + row * dataset.features;
    for (std::int64_t j = begin; j < end; ++j) {
      moments[j].mean += static_cast<double>(x[j]);
      moments[j].constant &= x[j] == first[j];
    }
  }
  for (std::int64_t j = begin; j < end; ++j) moments[j].mean /= n;
  for (std::int32_t row : rows) {
    const T* x = values + row * dataset.features;
    for (std::int64_t j = begin; j < end; ++j) {
      const double d = static_cast<double>(x[j]) - moments[j].mean;
      moments[j].variance += d * d;
    }
  }
  for (std::int64_t j = begin; j < end; ++j) moments[j].variance /= n;
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

Standardizer Standardizer::fit(const Dataset& dataset, std::span<const std::int32_t> rows) {
  check(!rows.empty(), "Standardizer: no training rows of ", dataset.name,
        " given, at least one needed");
  constexpr std::int64_t kColumns = 64;
  std::vector<Moments> columns(static_cast<std::size_t>(dataset.features));
  parallel_ranges(dataset.features, kColumns, [&](std::int64_t begin, std::int64_t end) {
    const auto moments =
        dataset.element == Element::kByte ? column_moments<std::uint8_t> : column_moments<float>;
    moments(dataset, rows, begin, end, columns.data());
  });
  if (dataset.is_image()) columns = {pool(dataset, rows[0], columns)};
  std::vector<float> means, inverse_stds;
  for (const Moments& column : columns) {
    means.push_back(static_cast<float>(column.mean));
    inverse_stds.push_back(inverse_std(column));
  }
  return {std::move(means), std::move(inverse_stds)};
}

Standardizer::Standardizer(std::vector<float> means, std::vector<float> inverse_stds)
    : means_(std::move(means)), inverse_stds_(std::move(inverse_stds)) {
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

void Standardizer::apply(std::span<float> row) const {
  const auto standardized = [](float x, double mean, double inverse_std) {
    constexpr double kMax = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp((double{x} - mean) * inverse_std, -kMax, kMax));
  };
  // Two loops: statistics that are read anew for each value of an image cost a fifth of the time
  // that its batches take.
  if (means_.size() == 1) {
    const double mean{means_[0]}, inverse_std{inverse_stds_[0]};
    for (float& x : row) x = standardized(x, mean, inverse_std);
    return;
  }
  for (std::size_t j = 0; j < row.size(); ++j) {
    row[j] = standardized(row[j], double{means_[j]}, double{inverse_stds_[j]});
  }
}

}  // namespace tritgrad
