// What an update of weights goes against, and how it becomes whole levels of a format.
#pragma once

#include <cstdint>

namespace tritgrad {

// What an update goes against, where it reads it: fp32 numbers, or sums of an integer product less
// a correction (the difference fits an int32), and what all of them are to be multiplied by.
struct Direction {
  Direction() = default;  // not to be read
  // Implicit: every place for a direction takes plain floats.
  Direction(const float* numbers, float factor_ = 1.0f) : floats(numbers), factor(factor_) {}
  Direction(const std::int32_t* sums_, std::int32_t correction_, float factor_)
      : sums(sums_), correction(correction_), factor(factor_) {}

  // That of elements from i on.
  Direction from(std::int64_t i) const {
    if (floats != nullptr) return {floats + i, factor};
    return {sums + i, correction, factor};
  }

  const float* floats = nullptr;
  const std::int32_t* sums = nullptr;
  std::int32_t correction = 0;
  float factor = 1.0f;
};

// How a direction becomes whole levels of a fixed-point format: clip(floor(e + u), -limit, limit)
// with u = ((noise[i] + offset) mod 65536 + 0.5) / 65536, or clip(rint(e)) (ties to even) when
// noise == nullptr, where e = (-scale * factor) * x and x = floats[i] or sums[i] - correction. NaN
// gives 0. 0 <= limit <= 255.
struct LevelRounding {
  float scale;
  int limit;
  const std::uint16_t* noise;
  std::uint16_t offset = 0;

  // That of elements from i on.
  LevelRounding from(std::int64_t i) const {
    return {scale, limit, noise == nullptr ? nullptr : noise + i, offset};
  }
};

}  // namespace tritgrad
