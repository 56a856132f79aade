// How ops divide a [rows x features] tensor among threads: by rows, or by pieces of columns when
// sums run down the columns, and of rows where there are many. The pieces have fixed sizes, so sums
// do not depend on the number of threads.
#pragma once

#include "engine/parallel.h"
#include "engine/tensor.h"

namespace tritgrad {

inline constexpr std::int64_t kColumnPiece = 256;
inline constexpr std::int64_t kElementsPerUnit = 32768;

// body(row)
template <typename Body>
void for_each_row(const Tensor& x, Body&& body) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, kElementsPerUnit / std::max<std::int64_t>(1, x.cols()));
  parallel_ranges(x.rows(), rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// body(first_column, last_column)
template <typename Body>
void for_each_column_piece(const Tensor& x, Body&& body) {
  parallel_ranges(x.cols(), kColumnPiece, body);
}

// Rows of a tile: more than a batch of anything but pixels has.
inline constexpr std::int64_t kTileRows = 4096;
inline std::int64_t tiles_down(const Tensor& x) { return (x.rows() + kTileRows - 1) / kTileRows; }

// body(first_column, last_column, first_row, last_row)
template <typename Body>
void for_each_tile(const Tensor& x, Body&& body) {
  const std::int64_t down = tiles_down(x);
  parallel_for((x.cols() + kColumnPiece - 1) / kColumnPiece * down, [&](std::int64_t tile) {
    const std::int64_t begin = tile / down * kColumnPiece;
    const std::int64_t top = tile % down * kTileRows;
    body(begin, std::min(x.cols(), begin + kColumnPiece), top, std::min(x.rows(), top + kTileRows));
  });
}

}  // namespace tritgrad
