// A matrix of floats that lies row by row, or in strips of 64 columns, one behind the other.
//
// In a row-major matrix whose rows are a power of two apart, the numbers of a column share the few
// places that the caches have for each of them; a strip lies in one piece, and what goes down its
// columns some times finds it in the cache. It is what a panel of a product makes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/products.h"
#include "engine/memory/prefetch.h"
#include "engine/tape.h"

namespace tritgrad {

inline constexpr std::int64_t kStripColumns = kPanelColumns;

struct ColumnBlocked {
  std::int64_t rows, cols;
  std::int64_t ld;      // from a row to the next one
  std::int64_t stride;  // from 64 columns to the next ones
  float* data;

  // Implicit: a matrix may be given wherever strips may.
  ColumnBlocked(const Tensor& matrix)  // NOLINT(google-explicit-constructor)
      : rows(matrix.rows()),
        cols(matrix.cols()),
        ld(cols),
        stride(kStripColumns),
        data(matrix.data) {}
  // Strips in memory of strips_shape(): strip s holds columns [64 s, 64 s + 64) of all rows, 64
  // apart; those that are not there are undefined.
  ColumnBlocked(std::int64_t rows_, std::int64_t cols_, float* strips)
      : rows(rows_),
        cols(cols_),
        ld(kStripColumns),
        stride(strips_shape(rows, cols).cols()),
        data(strips) {}

  bool is_in_strips() const { return stride != kStripColumns; }
  float* at(std::int64_t row, std::int64_t column) const {
    return data + column / kStripColumns * stride + column % kStripColumns + row * ld;
  }
  // Returns how far, up to `last`, the columns from `column` on lie side by side.
  std::int64_t neighbours_end(std::int64_t column, std::int64_t last) const {
    if (!is_in_strips()) return last;
    return std::min(last, (column / kStripColumns + 1) * kStripColumns);
  }

  // Returns the shape [strips, numbers of one]. A strip has a cache line more than there are
  // numbers, so that neighbours of a row do not lie a power of two apart either.
  static Shape strips_shape(std::int64_t rows, std::int64_t cols) {
    return {(cols + kStripColumns - 1) / kStripColumns,
            rows * kStripColumns + kCacheLine / static_cast<std::int64_t>(sizeof(float))};
  }
};

// Takes memory for strips in the tape's arena.
inline ColumnBlocked allocate_strips(Tape& tape, std::int64_t rows, std::int64_t cols) {
  return {rows, cols, tape.tensor(ColumnBlocked::strips_shape(rows, cols)).data};
}

}  // namespace tritgrad
