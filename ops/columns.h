// How ops divide a [rows x features] tensor among threads: by rows, or by pieces of columns when
// sums run down the columns, and of rows where there are many. The pieces have fixed sizes, so sums
// do not depend on the number of threads.
#pragma once

#include <algorithm>

#include "engine/memory/parallel.h"
#include "engine/memory/prefetch.h"
#include "engine/tape.h"
#include "engine/tensor.h"

namespace tritgrad {

// Pieces of columns: of wide tensors stretches of a row that are long enough for the processor to
// fetch what follows by itself, and at least four of them, for as many threads.
inline constexpr std::int64_t kColumnPiece = 256;
inline constexpr std::int64_t kLongestPiece = 1024;
inline std::int64_t column_piece(std::int64_t cols) {
  return std::clamp(cols / 4 / kColumnPiece * kColumnPiece, kColumnPiece, kLongestPiece);
}
inline constexpr std::int64_t kElementsPerUnit = 32768;

// Calls body(row) for all rows of x.
template <typename Body>
void for_each_row(const Tensor& x, Body&& body) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, kElementsPerUnit / std::max<std::int64_t>(1, x.cols()));
  parallel_ranges(x.rows(), rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// Calls body(first_column, last_column) for pieces of at most kLongestPiece columns.
template <typename Body>
void for_each_column_piece(const Tensor& x, Body&& body) {
  parallel_ranges(x.cols(), column_piece(x.cols()), body);
}

// Narrow rows (of pixels, say, of few channels) are read `together` as wide ones, so that kernels
// have something to do. Tensors have no gaps; what there is per column has to be repeated.
struct Wide {
  std::int64_t features;
  std::int64_t together = 1;  // a power of two that divides the rows

  explicit Wide(const Tensor& x) : features(x.cols()) {
    while (x.rows() % (2 * together) == 0 && 2 * cols() <= kColumnPiece) together *= 2;
  }
  Wide(const Tensor& x, std::int64_t rows) : features(x.cols()), together(rows) {}
  std::int64_t cols() const { return features * together; }
  Tensor operator()(const Tensor& x) const { return {x.data, {x.rows() / together, cols()}}; }
};

// Rows of a piece, before they are widened: more than a batch of anything but pixels has.
inline constexpr std::int64_t kPieceRows = 4096;
inline std::int64_t pieces_down(const Tensor& x) {
  return (x.rows() + kPieceRows - 1) / kPieceRows;
}

// Asks for columns [begin, begin + n) of the row that follows the next one: a piece of columns is a
// stretch of each row, and rows lie pages apart, where the processor's own prefetching starts anew.
inline void prefetch_after(const Tensor& x, std::int64_t row, std::int64_t begin, std::int64_t n) {
  prefetch(x.row(row + 2) + begin, n * static_cast<std::int64_t>(sizeof(float)));
}

// A pass over some columns of a matrix asks for so many rows of them before it takes those above:
// enough for memory to answer, few enough not to hold up what is read meanwhile.
inline constexpr std::int64_t kRowsAhead = 8;

// Asks for n columns from `begin` on of the `rows` rows from `top` on, as far as there are any: to
// be read, or written.
inline void prefetch_rows(const Tensor& x, std::int64_t top, std::int64_t rows, std::int64_t begin,
                          std::int64_t n) {
  for (std::int64_t row = top; row < std::min(top + rows, x.rows()); ++row) {
    prefetch<Near::kNext>(x.row(row) + begin, n * static_cast<std::int64_t>(sizeof(float)));
  }
}

// Calls body(first_column, last_column, first_row, last_row, how many pieces lie above) for pieces
// of wide x.
template <typename Body>
void for_each_piece(const Wide& wide, const Tensor& x, Body&& body) {
  const Tensor all = wide(x);
  const std::int64_t rows = kPieceRows / wide.together;
  const std::int64_t down = (all.rows() + rows - 1) / rows;
  const std::int64_t width = column_piece(all.cols());
  parallel_for((all.cols() + width - 1) / width * down, [&](std::int64_t piece) {
    const std::int64_t begin = piece / down * width;
    const std::int64_t top = piece % down * rows;
    body(begin, std::min(all.cols(), begin + width), top, std::min(all.rows(), top + rows),
         piece % down);
  });
}

// Whether a piece of columns can go through all passes of an op in one turn: its sums are nobody
// else's. That spares threads the waits between passes.
inline bool columns_are_whole(const Wide& wide, const Tensor& x) {
  return wide.together == 1 && pieces_down(x) == 1;
}

// `kinds` sums down each column of x [kinds x features], in double and in scratch. add(sums, row,
// begin, n) adds columns [begin, begin + n) of a wide row; sums of the next kind lie wide.cols()
// further on. Rows are read in order, so that memory is, and the sums of pieces are joined in
// order.
template <typename Add>
double* sum_columns(Tape& tape, const Wide& wide, const Tensor& x, std::int64_t kinds,
                    const Add& add) {
  const std::int64_t n = kinds * wide.cols();
  const std::int64_t pieces = pieces_down(x);
  double* sums = tape.allocate_scratch<double>(pieces * n);
  std::fill_n(sums, pieces * n, 0.0);
  for_each_piece(wide, x,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                     std::int64_t piece) {
                   for (std::int64_t row = top; row < bottom; ++row) {
                     add(sums + piece * n + begin, row, begin, end - begin);
                   }
                 });
  double* joined = tape.allocate_scratch<double>(kinds * wide.features);
  std::fill_n(joined, kinds * wide.features, 0.0);
  for (std::int64_t part = 0; part < pieces * kinds * wide.together; ++part) {
    double* to = joined + part / wide.together % kinds * wide.features;
    for (std::int64_t i = 0; i < wide.features; ++i) to[i] += sums[part * wide.features + i];
  }
  return joined;
}

}  // namespace tritgrad
