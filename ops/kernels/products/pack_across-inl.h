// Rows of bytes as columns of a panel: transposed in registers, a word of four bytes at a time.
#pragma once

#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/transpose-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

void pack_across(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld, std::int64_t depth,
                 std::int64_t columns, int offset) {
  std::int64_t packed = 0;
  if (columns == kPanelColumns) {
    const U8 offsets(static_cast<std::uint8_t>(offset));
    for (; packed + 4 * kWords <= depth; packed += 4 * kWords) {
      for (std::int64_t column = 0; column < kPanelColumns; column += kWords) {
        transpose_rows(rows + column * ld + packed, ld, [&](int i, const U8& words) {
          write(panel + (packed + 4 * i) * kPanelColumns + 4 * column, words + offsets);
        });
      }
    }
  }
  TRITGRAD_TARGET::pack_across(panel + packed * kPanelColumns, rows + packed, ld, depth - packed,
                               columns, offset);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
