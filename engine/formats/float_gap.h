// The distance of a float to its neighbour on the side of zero.
#pragma once

#include <bit>
#include <cstdint>

namespace tritgrad {

// Neighbours are floats whose last `dropped_bits` bits are zero (0 for fp32, 16 for bf16), as those
// of x must be. The neighbour beyond is as far or, at a power of two, twice as far. For 0 the gap
// is the smallest positive number of the grid, for infinity it is infinite, for NaN it is NaN.
inline float gap_towards_zero(float x, int dropped_bits) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
  const std::uint32_t step = 1u << dropped_bits;
  const std::uint32_t upper = magnitude == 0 ? step : magnitude;
  return std::bit_cast<float>(upper) - std::bit_cast<float>(upper - step);
}

// What fp32 arithmetic loses of an update, whatever becomes of the result: turns x into half its
// gaps.
inline void half_gaps_of_floats(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = 0.5f * gap_towards_zero(x[i], 0);
}

}  // namespace tritgrad
