// The places of the packed codes of a matrix: rows and blocks begin on bytes.
#pragma once

#include <cstdint>

#include "engine/formats/format.h"

namespace tritgrad {

// Returns the bytes of n codes of 4, 5 or 6 bits: low nibbles two to a byte, then the bits above
// (CodecKernels::pack_codes).
constexpr std::int64_t packed_code_bytes(int bits, std::int64_t n) {
  return (n + 1) / 2 + (n * (bits - 4) + 7) / 8;
}

constexpr std::int64_t packed_row_bytes(int bits, std::int64_t cols) {
  return cols / kBlock * packed_code_bytes(bits, kBlock) + packed_code_bytes(bits, cols % kBlock);
}

// Returns the first byte of a block.
constexpr std::int64_t packed_offset(int bits, std::int64_t cols, const Block& block) {
  return block.row * packed_row_bytes(bits, cols) +
         block.col / kBlock * packed_code_bytes(bits, kBlock);
}

}  // namespace tritgrad
