#include "engine/memory/column_blocks.h"

#include <cstring>
#include <vector>

namespace tritgrad {
namespace {

constexpr std::int64_t kPieceBytes = 65'536;

}  // namespace

void ColumnBlocks::for_each_piece(
    std::span<const std::byte> plane,
    const std::function<void(std::span<const std::byte>)>& body) const {
  if (is_as_in_files()) return body(plane);
  const std::int64_t together = std::clamp<std::int64_t>(kPieceBytes / row_bytes_, 1, rows_);
  std::vector<std::byte> piece(static_cast<std::size_t>(together * row_bytes_));
  for (std::int64_t top = 0; top < rows_; top += together) {
    const std::int64_t count = std::min(together, rows_ - top);
    for (std::int64_t begin = 0; begin < row_bytes_; begin += block_bytes_) {
      for (std::int64_t r = 0; r < count; ++r) {
        std::memcpy(piece.data() + r * row_bytes_ + begin, plane.data() + offset(top + r, begin),
                    static_cast<std::size_t>(width(begin)));
      }
    }
    body(std::span(piece).first(static_cast<std::size_t>(count * row_bytes_)));
  }
}

void ColumnBlocks::copy_from_file(std::span<std::byte> plane,
                                  std::span<const std::byte> file) const {
  if (plane.empty()) return;
  if (is_as_in_files()) {
    std::memcpy(plane.data(), file.data(), plane.size());
    return;
  }
  for (std::int64_t begin = 0; begin < row_bytes_; begin += block_bytes_) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::memcpy(plane.data() + offset(r, begin), file.data() + r * row_bytes_ + begin,
                  static_cast<std::size_t>(width(begin)));
    }
  }
}

}  // namespace tritgrad
