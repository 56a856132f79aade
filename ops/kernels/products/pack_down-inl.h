// Four rows of bytes as groups of a panel: their bytes are interleaved in registers.
#pragma once

#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/interleave-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

void pack_down(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld, std::int64_t depth,
               std::int64_t columns, int offset) {
  std::int64_t packed = 0;
  if (columns == kPanelColumns) {
    const U8 offsets(static_cast<std::uint8_t>(offset));
    for (; packed + 4 <= depth; packed += 4) {
      for (std::int64_t column = 0; column < kPanelColumns; column += kLanes<U8>) {
        std::uint8_t* to = panel + packed * kPanelColumns + 4 * column;
        interleave_rows(rows + packed * ld + column, ld,
                        [&](int v, const U8& four) { write(to + v * kLanes<U8>, four + offsets); });
      }
    }
  }
  TRITGRAD_TARGET::pack_down(panel + packed * kPanelColumns, rows + packed * ld, ld, depth - packed,
                             columns, offset);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
