// A direction as whole levels of a fixed-point format, a vector at a time (LevelRounding of
// engine/kernel_table.h).
#pragma once

#include "engine/kernel_table.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

class Levels {
 public:
  Levels(const float* direction, const LevelRounding& rounding)
      : direction_(direction),
        noise_(rounding.noise),
        negative_scale_(-rounding.scale),
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
    F32 exact = negative_scale_ * read<F32>(direction_ + i);
    // Both of the noise's operations are exact, so they may be fused.
    if (noise_ != nullptr) {
      exact += multiply_add(xsimd::to_float(read_i32(noise_ + i)), F32(0x1p-16f), F32(0x1p-17f));
    }
    // What is too small for an integer becomes the smallest one; NaN becomes 0.
    const F32 limited = xsimd::min(high_, exact);
    return noise_ == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
  }

  const float* direction_;
  const std::uint16_t* noise_;
  F32 negative_scale_, high_;
  int limit_;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
