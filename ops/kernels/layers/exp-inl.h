// The exponential function in plain scalar form that the compiler vectorises, with the same bits on
// every instruction set.
#pragma once

#include <bit>
#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// e^x for x in [-87.33, 88.37], within 2 units of 2^-24 of it; NaN stays. x = k ln 2 + r with |r|
// <= ln 2 / 2, the polynomial in r as in Cephes' expf (Moshier); k is added to the exponent by its
// bits.
[[gnu::always_inline]] inline float small_exp(float x) {
  constexpr float kWhole = 0x1.8p23f;  // what it is added to loses its fraction
  const float shifted = x * 1.44269504f + kWhole;
  const float k = shifted - kWhole;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;  // ln 2 in two parts
  const float p =
      ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) *
           r +
       1.6666665459e-1f) *
          r +
      5.0000001201e-1f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) +
                                           std::bit_cast<std::uint32_t>(1.0f));
  return (p * (r * r) + r + 1.0f) * power;
}

// e^x for x <= 0, within 2 units of 2^-24 of it, but 0 below -87.33, where it would be no normal
// number; NaN stays.
[[gnu::always_inline]] inline float decaying_exp(float x) {
  constexpr float kSmallest = -87.33f;
  const float e = small_exp(x < kSmallest ? kSmallest : x);
  return x < kSmallest ? 0.0f : e;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
