// How a parameter is cut into the runs that a rule sees, where its gradient does not come in tiles.
//
// A run is either some whole rows or a piece of one row that begins at a multiple of kBlock, so its
// elements are neighbours in row-major order and its blocks are whole. The cut depends on the shape
// and the limit; a pass over some rows begins at a multiple of rows_per_run().
#pragma once

#include <algorithm>

#include "engine/formats/format.h"

namespace tritgrad {

class Runs {
 public:
  // limit: elements of a run at most; at least kBlock.
  Runs(const Shape& shape, std::int64_t limit)
      : rows_(shape.rows()),
        cols_(std::max<std::int64_t>(1, shape.cols())),
        rows_per_run_(std::max<std::int64_t>(1, limit / cols_)),
        piece_(cols_ <= limit ? cols_ : limit / kBlock * kBlock),
        pieces_((cols_ + piece_ - 1) / piece_) {}

  // Rows that belong together: a thread takes whole multiples of them.
  std::int64_t rows_per_run() const { return rows_per_run_; }
  std::int64_t count() const { return (rows_ + rows_per_run_ - 1) / rows_per_run_ * pieces_; }
  // The number of the run whose first element (row-major) this is.
  std::int64_t index_of(std::int64_t first) const {
    const std::int64_t row = first / cols_;
    return row / rows_per_run_ * pieces_ + first % cols_ / piece_;
  }
  std::int64_t size(std::int64_t index) const {
    const std::int64_t row = index / pieces_ * rows_per_run_;
    const std::int64_t col = index % pieces_ * piece_;
    return std::min(rows_per_run_, rows_ - row) * std::min(piece_, cols_ - col);
  }

  // Calls body(row_begin, row_end, col_begin, col_end) for the runs of rows [begin, end).
  template <typename Body>
  void for_each(std::int64_t begin, std::int64_t end, Body&& body) const {
    for (std::int64_t row = begin; row < end; row += rows_per_run_) {
      for (std::int64_t col = 0; col < cols_; col += piece_) {
        body(row, std::min(end, row + rows_per_run_), col, std::min(cols_, col + piece_));
      }
    }
  }

 private:
  std::int64_t rows_, cols_;
  std::int64_t rows_per_run_;
  std::int64_t piece_;   // elements of a row in one run
  std::int64_t pieces_;  // runs of one row (1 if a run holds whole rows)
};

}  // namespace tritgrad
