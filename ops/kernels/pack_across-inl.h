// Rows of bytes as columns of a panel: transposed in registers, a word of four bytes at a time.
#pragma once

#include "ops/kernels/integer_loops-inl.h"
#include "ops/kernels/transpose-inl.h"

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
        U8::register_type words[kWords];
        for (int i = 0; i < kWords; ++i) {
          const std::int8_t* from = rows + (column + i) * ld + packed;
          words[i] = read<U8>(reinterpret_cast<const std::uint8_t*>(from)) + offsets;
        }
        transpose(words);
        for (int i = 0; i < kWords; ++i) {
          write(panel + (packed + 4 * i) * kPanelColumns + 4 * column, U8(words[i]));
        }
      }
    }
  }
  TRITGRAD_TARGET::pack_across(panel + packed * kPanelColumns, rows + packed, ld, depth - packed,
                               columns, offset);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
