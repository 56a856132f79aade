// fp16 numbers as they are stored: a sign, 5 bits of exponent and 10 of mantissa.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/formats/half_precision.h"

namespace tritgrad {

// Returns the bits of the fp16 number that is nearest to x (ties to even); |x| must be below 65520,
// from which on that would be infinity.
inline std::uint16_t half_bits(float x) {
  const auto sign = static_cast<std::uint32_t>(std::signbit(x) ? 0x8000u : 0u);
  const float magnitude = std::abs(x);
  std::uint32_t bits = 0;
  if (magnitude < 0x1p-14f) {            // whole multiples of 2^-24
    constexpr float kShift = 0x1.8p23f;  // a sum with it has no bits below one
    bits = static_cast<std::uint32_t>((magnitude * 0x1p24f + kShift) - kShift);
  } else {
    constexpr std::uint32_t kBias = 127 - 15;  // of the exponents
    bits = (std::bit_cast<std::uint32_t>(round_to_half(magnitude)) >> 13) - (kBias << 10);
  }
  return static_cast<std::uint16_t>(sign | bits);
}

// Returns the value of an fp16 number.
inline float float_of_half(std::uint16_t bits) {
  const std::uint32_t exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  if (exponent == 31) {  // infinity and NaN
    magnitude = std::bit_cast<float>(0x7F800000u | fraction << 13);
  } else if (exponent > 0) {
    magnitude = std::bit_cast<float>((exponent + 112u) << 23 | fraction << 13);
  }
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

}  // namespace tritgrad
