// The numbers that an update of weights goes against, and their rounding to whole levels of a
// format.
#pragma once

#include <cstdint>

namespace tritgrad {

// The numbers that an update goes against, read where they lie: fp32 numbers, or sums of an integer
// product less a correction (the difference fits an int32); or the signs of these, 0 where a number
// is 0 or not finite. All of them are to be multiplied by `factor`.
struct Direction {
  Direction() = default;  // not to be read
  // Implicit: every place for a direction takes plain floats.
  Direction(const float* numbers, float factor_ = 1.0f,  // NOLINT(google-explicit-constructor)
            bool signs_ = false)
      : floats(numbers), factor(factor_), signs(signs_) {}
  Direction(const std::int32_t* sums_, std::int32_t correction_, float factor_, bool signs_ = false)
      : sums(sums_), correction(correction_), factor(factor_), signs(signs_) {}

  // Returns the direction of elements from i on.
  Direction from(std::int64_t i) const {
    if (floats != nullptr) return {floats + i, factor, signs};
    return {sums + i, correction, factor, signs};
  }

  const float* floats = nullptr;
  const std::int32_t* sums = nullptr;
  std::int32_t correction = 0;
  float factor = 1.0f;
  bool signs = false;
};

// (noise + 0.5) / 2^16, which is never 0, in units of 2^-32.
constexpr std::uint32_t as_fraction(std::uint16_t noise) {
  return std::uint32_t{noise} << 16 | 0x8000u;
}

// Returns an offset of all noise, in units of 2^-32.
constexpr std::uint32_t as_offset(std::uint16_t noise) { return std::uint32_t{noise} << 16; }

// Rounding of a direction to whole levels of a fixed-point format: clip(floor(e + u), -limit,
// limit) with u = ((noise[i] + offset) mod 2^32) / 2^32, or clip(rint(e)) (ties to even) when noise
// == nullptr, where e = (-scale * factor) * x and x = floats[i] or sums[i] - correction, or its
// sign. NaN gives 0. 0 <= limit <= 255. Noise is given as_fraction(), its offset as_offset(): a
// float holds u.
struct LevelRounding {
  float scale;
  int limit;
  const std::uint32_t* noise;
  std::uint32_t offset = 0;

  // Returns the rounding of elements from i on.
  LevelRounding from(std::int64_t i) const {
    return {scale, limit, noise == nullptr ? nullptr : noise + i, offset};
  }
};

// The directions of rows of n elements that one call updates.
struct DirectionRows {
  const Direction* directions;     // [count]
  const LevelRounding* roundings;  // [count]
  std::int64_t count, n;
  // Out [count], unless null: the sums of squares of their numbers without the factors, as
  // sum_of_squares (reductions.h) gives them of floats, and sum_of_squared_sums of sums less
  // corrections.
  double* squares = nullptr;
};

}  // namespace tritgrad
