// Small arithmetic in plain scalar code that the compiler can vectorise on every instruction set.
#pragma once

#include <bit>
#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The nearest integer, ties to even, of |x| < 2^22. Adding 1.5 * 2^23 leaves no bits below one.
[[gnu::always_inline]] constexpr int round_to_int(float x) {
  constexpr float kShift = 12582912.0f;
  return std::bit_cast<int>(x + kShift) - std::bit_cast<int>(kShift);
}

// The integer at or below |x| < 2^31.
[[gnu::always_inline]] constexpr std::int32_t floor_to_int(float x) {
  const auto towards_zero = static_cast<std::int32_t>(x);
  return towards_zero - (x < static_cast<float>(towards_zero) ? 1 : 0);
}

// Within +-limit; NaN becomes 0.
[[gnu::always_inline]] constexpr float clip(float x, float limit) {
  const float number = x == x ? x : 0.0f;
  const float below = number < limit ? number : limit;
  return below > -limit ? below : -limit;
}

// Above 0 and below 1, of 16 random bits.
[[gnu::always_inline]] constexpr float uniform_of(std::uint16_t noise) {
  return (static_cast<float>(noise) + 0.5f) * 0x1p-16f;
}

[[gnu::always_inline]] inline float float_of_bf16(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
