// factored: row means and column means, element (i, j) = row_i col_j / mean; 4 (rows + cols + 1)
// bytes. The sums of the pass under way are workspace, for as long as the moment lives: 8 bytes a
// row, and 4 bytes a column for each part of a pass (most_slots()).
//
// For second moments (Shazeer, Stern: Adafactor, 2018): the matrix of rank one whose row and column
// means are those of what is written. Means are linear, so a moving average that is decoded,
// updated and written again has the moving averages of the row and column means, exactly as if they
// had been kept themselves. As in scalar, reading gives the last complete pass, and writing adds to
// the one under way, which counts from refresh() on.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/formats/format.h"

namespace tritgrad {

class Factored {
 public:
  static constexpr FormatTraits kTraits{
      .kind = FormatKind::kFactored, .name = "factored", .has_statistics = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"row_mean", Dtype::kF32, shape.rows(), value_category, true},
            {"col_mean", Dtype::kF32, shape.cols(), value_category, true},
            {"inverse_mean", Dtype::kF32, 1, value_category, true}};
  }

  Factored(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        rows_(shape.rows()),
        cols_(shape.cols()),
        slots_(most_slots(shape)),
        row_means_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        col_means_(static_cast<std::size_t>(specs_[1].bytes()), value_category),
        inverse_mean_(static_cast<std::size_t>(specs_[2].bytes()), value_category),
        row_sums_(static_cast<std::size_t>(rows_) * sizeof(double), Category::kWorkspace),
        col_sums_(static_cast<std::size_t>(slots_ * cols_) * sizeof(float), Category::kWorkspace) {}

  std::vector<Plane> planes() const {
    return {{specs_[0], row_means_.bytes()},
            {specs_[1], col_means_.bytes()},
            {specs_[2], inverse_mean_.bytes()}};
  }

  void decode_value(const Block& block, float* out) const {
    const float factor = *inverse_mean_.as<float>() * row_means_.as<float>()[block.row];
    const float* col = col_means_.as<float>() + block.col;
    for (std::int64_t i = 0; i < block.n; ++i) out[i] = factor * col[i];
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  void encode(const Block& block, const float* master, const RandomKey&) {
    float* cols = col_sums_.as<float>() + std::min(block.slot, slots_ - 1) * cols_ + block.col;
    double sum = 0.0;
    for (std::int64_t i = 0; i < block.n; ++i) {
      sum += static_cast<double>(master[i]);
      cols[i] += master[i];
    }
    row_sums_.as<double>()[block.row] += sum;
  }
  FlipCounts descend(const Block&, const float*, const Descent&) {
    fail("Factored::descend: row and column means cannot hold the weights of a matrix");
  }

  void refresh() {
    double total = 0.0;
    for (std::int64_t i = 0; i < rows_; ++i) {
      const double sum = std::exchange(row_sums_.as<double>()[i], 0.0);
      row_means_.as<float>()[i] = static_cast<float>(sum / static_cast<double>(cols_));
      total += sum;
    }
    const double mean = total / static_cast<double>(rows_ * cols_);
    *inverse_mean_.as<float>() = mean > 0.0 ? static_cast<float>(1.0 / mean) : 0.0f;
    for (std::int64_t j = 0; j < cols_; ++j) {
      double sum = 0.0;
      for (std::int64_t slot = 0; slot < slots_; ++slot) {
        sum += static_cast<double>(std::exchange(col_sums_.as<float>()[slot * cols_ + j], 0.0f));
      }
      col_means_.as<float>()[j] = static_cast<float>(sum / static_cast<double>(rows_));
    }
  }

 private:
  std::vector<PlaneSpec> specs_;
  std::int64_t rows_, cols_, slots_;
  Buffer row_means_, col_means_, inverse_mean_;
  Buffer row_sums_;  // of the pass under way
  Buffer col_sums_;  // [slot][col]
};
static_assert(Format<Factored>);

}  // namespace tritgrad
