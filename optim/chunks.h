// Chunks, the pieces of a parameter that are updated at once.
#pragma once

#include <algorithm>

#include "engine/formats/format.h"

namespace tritgrad {

// A chunk is the same columns of some rows of a parameter; `slot` is the part of the pass that it
// belongs to.
struct Chunk {
  std::int64_t row_begin, row_end, col_begin, col_end;
  std::int64_t slot;

  std::int64_t rows() const { return row_end - row_begin; }
  std::int64_t cols() const { return col_end - col_begin; }
  std::int64_t size() const { return rows() * cols(); }
  std::int64_t blocks() const { return rows() * ((cols() + kBlock - 1) / kBlock); }
};

// The cut of a parameter into chunks, where its gradient does not come in tiles: some whole rows,
// or a piece of one row that begins at a multiple of kBlock. The elements of such a chunk are
// neighbours in row-major order, and its blocks are whole. The cut depends on the shape and the
// limit; a pass over some rows begins at a multiple of rows_per_chunk().
class Chunks {
 public:
  // A chunk has at most `limit` elements; at least kBlock.
  Chunks(const Shape& shape, std::int64_t limit)
      : rows_(shape.rows()),
        cols_(std::max<std::int64_t>(1, shape.cols())),
        rows_per_chunk_(std::max<std::int64_t>(1, limit / cols_)),
        piece_(cols_ <= limit ? cols_ : limit / kBlock * kBlock),
        pieces_((cols_ + piece_ - 1) / piece_) {}

  // Returns the rows that belong together: a thread takes whole multiples of them.
  std::int64_t rows_per_chunk() const { return rows_per_chunk_; }
  std::int64_t count() const { return (rows_ + rows_per_chunk_ - 1) / rows_per_chunk_ * pieces_; }
  // Returns the number of the chunk whose first element (row-major) this is.
  std::int64_t index_of(std::int64_t first) const {
    const std::int64_t row = first / cols_;
    return row / rows_per_chunk_ * pieces_ + first % cols_ / piece_;
  }
  std::int64_t size(std::int64_t index) const {
    const std::int64_t row = index / pieces_ * rows_per_chunk_;
    const std::int64_t col = index % pieces_ * piece_;
    return std::min(rows_per_chunk_, rows_ - row) * std::min(piece_, cols_ - col);
  }

  // Calls body(chunk) for the chunks of rows [begin, end), which are part `slot` of the pass.
  template <typename Body>
  void for_each(std::int64_t begin, std::int64_t end, std::int64_t slot, Body&& body) const {
    for (std::int64_t row = begin; row < end; row += rows_per_chunk_) {
      for (std::int64_t col = 0; col < cols_; col += piece_) {
        body(Chunk{row, std::min(end, row + rows_per_chunk_), col, std::min(cols_, col + piece_),
                   slot});
      }
    }
  }

 private:
  std::int64_t rows_, cols_;
  std::int64_t rows_per_chunk_;
  std::int64_t piece_;   // elements of a row in one chunk
  std::int64_t pieces_;  // chunks of one row (1 if a chunk holds whole rows)
};

}  // namespace tritgrad
