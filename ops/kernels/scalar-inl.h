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

[[gnu::always_inline]] inline float float_of_bf16(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
