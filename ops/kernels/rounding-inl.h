// Rounding in plain scalar code that the compiler can vectorise on every instruction set.
#pragma once

#include <bit>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The nearest integer, ties to even, of |x| < 2^22. Adding 1.5 * 2^23 leaves no bits below one.
[[gnu::always_inline]] constexpr int round_to_int(float x) {
  constexpr float kShift = 12582912.0f;
  return std::bit_cast<int>(x + kShift) - std::bit_cast<int>(kShift);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
