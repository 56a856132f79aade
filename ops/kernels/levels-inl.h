// A direction as whole levels of a fixed-point format, a vector at a time (LevelRounding of
// engine/direction.h).
#pragma once

#include "engine/kernel_table.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The kinds of Direction, a vector of kLanes<F32> from element i on. Of those that are small, every
// number times the factor and the scale is far within an int32, and none is NaN.
struct FloatDirection {
  using Number = float;
  static constexpr bool kSmall = false;
  F32 at(std::int64_t i) const { return read<F32>(numbers + i); }
  Number zero() const { return 0.0f; }

  const float* numbers;
  float factor;
};
template <bool kIsSmall>
struct SumDirection {
  using Number = std::int32_t;
  static constexpr bool kSmall = kIsSmall;
  F32 at(std::int64_t i) const { return xsimd::to_float(read<I32>(numbers + i) - I32(correction)); }
  Number zero() const { return correction; }

  const std::int32_t* numbers;
  float factor;
  std::int32_t correction;
};

// Sums less their correction fit an int32; half of that leaves room for the noise.
inline bool are_small(const Direction& sums, const LevelRounding& rounding) {
  return __builtin_fabsf(rounding.scale * sums.factor) < 0.5f;
}

// body(FloatDirection or SumDirection)
template <typename Body>
auto with_direction(const Direction& direction, const LevelRounding& rounding, const Body& body) {
  if (direction.floats != nullptr) return body(FloatDirection{direction.floats, direction.factor});
  if (are_small(direction, rounding)) {
    return body(SumDirection<true>{direction.sums, direction.factor, direction.correction});
  }
  return body(SumDirection<false>{direction.sums, direction.factor, direction.correction});
}

// Noise in the fraction bits of a float, for rows that differ in the offset alone.
inline I32 noise_bits(const std::uint16_t* noise) { return read_i32(noise) << 7; }
inline std::int32_t offset_bits(std::uint16_t offset) { return offset << 7; }
// ((noise + offset) mod 65536 + 0.5) / 65536, exactly: a float in [1, 2), less what it has too
// much.
inline F32 noise_from_bits(const I32& noise, const I32& offset) {
  const I32 above_one = ((noise + offset) & I32(0x7FFFFF)) | xsimd::bitwise_cast<I32>(F32(1.0f));
  return xsimd::bitwise_cast<F32>(above_one) - F32(1.0f - 0x1p-17f);
}

template <typename Source>
class Levels {
 public:
  Levels(const Source& direction, const LevelRounding& rounding)
      : direction_(direction),
        noise_(rounding.noise),
        offset_(half_words(rounding.offset)),
        negative_scale_(-rounding.scale * direction.factor),
        limit_(rounding.limit) {}

  I32 at(std::int64_t i) const { return clamp(rounded(i), I32(-limit_), I32(limit_)); }
  I16 words(std::int64_t i) const {
    const auto most = static_cast<std::int16_t>(limit_);
    return clamp(narrow(rounded(i), rounded(i + kStep)), I16(static_cast<std::int16_t>(-most)),
                 I16(most));
  }
  // For limits up to 127.
  I8 bytes(std::int64_t i) const {
    const auto most = static_cast<std::int8_t>(limit_);
    return clamp(
        narrow(rounded(i), rounded(i + kStep), rounded(i + 2 * kStep), rounded(i + 3 * kStep)),
        I8(static_cast<std::int8_t>(-most)), I8(most));
  }

 private:
  static constexpr std::int64_t kStep = kLanes<I32>;

  // Not limited yet, but for what no integer could hold.
  I32 rounded(std::int64_t i) const {
    F32 exact = negative_scale_ * direction_.at(i);
    // Both of the noise's operations are exact, so they may be fused.
    if (noise_ != nullptr) {
      exact += multiply_add(xsimd::to_float(read_i32_plus(noise_ + i, offset_)), F32(0x1p-16f),
                            F32(0x1p-17f));
    }
    if constexpr (Source::kSmall) {
      return noise_ == nullptr ? nearest_of_small(exact) : floor_of_small(exact);
    }
    // What is too small for an integer becomes the smallest one; NaN becomes 0.
    const F32 limited = xsimd::min(F32(0x1p30f), exact);
    return noise_ == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
  }

  Source direction_;
  const std::uint16_t* noise_;
  HalfWords offset_;
  F32 negative_scale_;
  int limit_;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
