// Single numbers of 16 bits, without kernels and without hardware for them.
#pragma once

#include <bit>
#include <cstdint>

namespace tritgrad {

// bf16 is the upper half of an fp32 number.
inline float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// Returns the fp32 value that is nearest to x among the normal fp16 numbers (ties to even). x must
// lie in [2^-14, 65504], where fp16 keeps 10 of the 23 mantissa bits.
inline float round_to_half(float x) {
  constexpr std::uint32_t kDropped = 13;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t odd = (bits >> kDropped) & 1u;
  const std::uint32_t rounded = bits + (1u << (kDropped - 1)) - 1u + odd;
  return std::bit_cast<float>(rounded & ~((1u << kDropped) - 1u));
}

}  // namespace tritgrad
