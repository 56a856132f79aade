// The order of a matrix of bytes in memory, where it is read in pieces.
//
// In files a matrix lies row by row. A piece of it, some hundred columns of many rows, is then a
// few cache lines in each of many pages: more streams than the processor's own prefetching follows,
// more pages than it keeps addresses of, and, where rows are a multiple of 4 KiB apart, lines that
// share few places in the caches. In memory blocks of columns may follow each other instead, each
// with all of its rows, so that a piece is one run, and so are the pieces below it:
//
//     byte c of row r, in the block that begins at column b:   b rows + r width(b) + (c - b)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace tritgrad {

class ColumnBlocks {
 public:
  // The layout of files: row by row.
  ColumnBlocks() = default;
  // A row's last block may be shorter.
  ColumnBlocks(std::int64_t rows, std::int64_t row_bytes, std::int64_t block_bytes)
      : rows_(rows), row_bytes_(row_bytes), block_bytes_(block_bytes) {}

  // Returns the bytes of a row in the block that begins at byte `begin` of it. width() is also the
  // distance of two rows of the block.
  std::int64_t width(std::int64_t begin) const {
    return std::min(block_bytes_, row_bytes_ - begin);
  }
  std::int64_t offset(std::int64_t row, std::int64_t begin) const {
    return begin * rows_ + row * width(begin);
  }

  // Calls body(bytes) for all of `plane`, piece by piece, in the order of files.
  void for_each_piece(std::span<const std::byte> plane,
                      const std::function<void(std::span<const std::byte>)>& body) const;
  // Fills the plane with the bytes of a file, of which there are as many.
  void copy_from_file(std::span<std::byte> plane, std::span<const std::byte> file) const;

 private:
  bool is_as_in_files() const { return row_bytes_ <= block_bytes_ || rows_ <= 1; }

  std::int64_t rows_ = 0, row_bytes_ = 0, block_bytes_ = 0;
};

}  // namespace tritgrad
