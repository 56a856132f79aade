// A direction as whole levels of a fixed-point format, a vector at a time (LevelRounding of
// engine/kernel_table.h).
#pragma once

#include "engine/kernel_table.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The two kinds of Direction, a vector of kLanes<F32> from element i on.
struct FloatDirection {
  using Number = float;
  F32 at(std::int64_t i) const { return read<F32>(numbers + i); }
  Number zero() const { return 0.0f; }

  const float* numbers;
  float factor;
};
struct SumDirection {
  using Number = std::int32_t;
  F32 at(std::int64_t i) const { return xsimd::to_float(read<I32>(numbers + i) - I32(correction)); }
  Number zero() const { return correction; }

  const std::int32_t* numbers;
  float factor;
  std::int32_t correction;
};

// body(FloatDirection or SumDirection)
template <typename Body>
auto with_direction(const Direction& direction, const Body& body) {
  if (direction.floats != nullptr) return body(FloatDirection{direction.floats, direction.factor});
  return body(SumDirection{direction.sums, direction.factor, direction.correction});
}

template <typename Source>
class Levels {
 public:
  Levels(const Source& direction, const LevelRounding& rounding)
      : direction_(direction),
        noise_(rounding.noise),
        negative_scale_(-rounding.scale * direction.factor),
        high_(static_cast<float>(rounding.limit)),
        limit_(rounding.limit) {}

  I32 at(std::int64_t i) const { return xsimd::max(not_too_high(i), I32(-limit_)); }
  I16 words(std::int64_t i) const {
    return xsimd::max(narrow(not_too_high(i), not_too_high(i + kStep)),
                      I16(static_cast<std::int16_t>(-limit_)));
  }
  // For limits up to 127.
  I8 bytes(std::int64_t i) const {
    return xsimd::max(narrow(not_too_high(i), not_too_high(i + kStep), not_too_high(i + 2 * kStep),
                             not_too_high(i + 3 * kStep)),
                      I8(static_cast<std::int8_t>(-limit_)));
  }

 private:
  static constexpr std::int64_t kStep = kLanes<I32>;

  I32 not_too_high(std::int64_t i) const {
    F32 exact = negative_scale_ * direction_.at(i);
    // Both of the noise's operations are exact, so they may be fused.
    if (noise_ != nullptr) {
      exact += multiply_add(xsimd::to_float(read_i32(noise_ + i)), F32(0x1p-16f), F32(0x1p-17f));
    }
    // What is too small for an integer becomes the smallest one; NaN becomes 0.
    const F32 limited = xsimd::min(high_, exact);
    return noise_ == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
  }

  Source direction_;
  const std::uint16_t* noise_;
  F32 negative_scale_, high_;
  int limit_;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
