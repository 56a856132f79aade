// A single bf16 number, the upper half of an fp32 number, without kernels.
#pragma once

#include <bit>
#include <cstdint>

namespace tritgrad {

inline float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

}  // namespace tritgrad
