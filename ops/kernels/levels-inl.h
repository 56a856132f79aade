// A direction as whole levels of a fixed-point format, a vector at a time (LevelRounding of
// engine/direction.h).
#pragma once

#include <algorithm>
#include <type_traits>

#include "engine/kernel_table.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The kinds of Direction, a vector of kLanes<F32> from element i on. Of those that are small, every
// number times the factor and the scale is far within an int32, and none is NaN.
struct FloatDirection {
  static constexpr bool kSmall = false, kMeasured = false;
  explicit FloatDirection(const Direction& direction)
      : numbers(direction.floats), factor(direction.factor) {}
  F32 at(std::int64_t i) const { return read<F32>(numbers + i); }
  // Of the first `count` numbers from i on, none perhaps, and others that move nothing.
  F32 first(std::int64_t i, std::int64_t count) const {
    return count > 0 ? read_first(numbers + i, count, F32(0.0f)) : F32(0.0f);
  }
  // In vain, but cheap, where they do not lie in memory row after row.
  [[gnu::always_inline]] void ask_for_more(std::int64_t i, std::int64_t n) const { read_ahead(numbers + i, n); }

  const float* numbers;
  float factor;
};
// Whose squares are added up on the way.
struct MeasuredFloats : FloatDirection {
  static constexpr bool kMeasured = true;
  using FloatDirection::FloatDirection;
};
template <bool kIsSmall>
struct SumDirection {
  static constexpr bool kSmall = kIsSmall, kMeasured = false;
  explicit SumDirection(const Direction& direction)
      : numbers(direction.sums), factor(direction.factor), correction(direction.correction) {}
  F32 at(std::int64_t i) const { return less_correction(read<I32>(numbers + i)); }
  F32 first(std::int64_t i, std::int64_t count) const {
    const I32 none(correction);
    return less_correction(count > 0 ? read_first(numbers + i, count, none) : none);
  }
  F32 less_correction(const I32& sums) const { return xsimd::to_float(sums - I32(correction)); }
  [[gnu::always_inline]] void ask_for_more(std::int64_t /*i*/, std::int64_t /*n*/) const {}

  const std::int32_t* numbers;
  float factor;
  std::int32_t correction;
};
// Of every number but the infinite ones and NaN, which give 0.
inline F32 finite_signs(const F32& x) {
  const F32 magnitude = xsimd::abs(x);
  const auto has_sign = (magnitude > F32(0.0f)) & (magnitude < F32(__builtin_inff()));
  const I32 sign = xsimd::bitwise_cast<I32>(x) & I32(INT32_MIN);
  const I32 one = xsimd::bitwise_cast<I32>(F32(1.0f));
  return xsimd::select(has_sign, xsimd::bitwise_cast<F32>(sign | one), F32(0.0f));
}
// The signs of either.
struct SignDirection {
  static constexpr bool kSmall = false, kMeasured = false;
  explicit SignDirection(const Direction& direction)
      : is_floats(direction.floats != nullptr),
        floats(direction),
        sums(direction),
        factor(direction.factor) {}
  F32 at(std::int64_t i) const { return finite_signs(is_floats ? floats.at(i) : sums.at(i)); }
  F32 first(std::int64_t i, std::int64_t count) const {
    return finite_signs(is_floats ? floats.first(i, count) : sums.first(i, count));
  }
  [[gnu::always_inline]] void ask_for_more(std::int64_t i, std::int64_t n) const {
    if (is_floats) floats.ask_for_more(i, n);
  }

  bool is_floats;
  FloatDirection floats;
  SumDirection<false> sums;
  float factor;
};

enum class DirectionKind { kFloats, kMeasuredFloats, kSmallSums, kSums, kSigns };
inline DirectionKind kind_of(const Direction& direction, const LevelRounding& rounding,
                             bool measured) {
  if (direction.signs) return DirectionKind::kSigns;
  if (direction.floats != nullptr) {
    return measured ? DirectionKind::kMeasuredFloats : DirectionKind::kFloats;
  }
  // Sums less their correction fit an int32; half of that leaves room for the noise.
  const bool small = __builtin_fabsf(rounding.scale * direction.factor) < 0.5f;
  return small ? DirectionKind::kSmallSums : DirectionKind::kSums;
}
// body(tag of the type)
template <typename Body>
auto with_kind(DirectionKind kind, const Body& body) {
  switch (kind) {
    case DirectionKind::kFloats:
      return body(std::type_identity<FloatDirection>{});
    case DirectionKind::kMeasuredFloats:
      return body(std::type_identity<MeasuredFloats>{});
    case DirectionKind::kSmallSums:
      return body(std::type_identity<SumDirection<true>>{});
    case DirectionKind::kSums:
      return body(std::type_identity<SumDirection<false>>{});
    default:
      return body(std::type_identity<SignDirection>{});
  }
}
// body(the direction)
template <typename Body>
auto with_direction(const Direction& direction, const LevelRounding& rounding, const Body& body) {
  return with_kind(kind_of(direction, rounding, false),
                   [&](auto tag) { return body(typename decltype(tag)::type(direction)); });
}
// body(tag of the type, first, count) for the runs of rows that are of one kind.
template <typename Body>
void for_each_kind(const DirectionRows& rows, const Body& body) {
  const bool measured = rows.squares != nullptr;
  for (std::int64_t first = 0, end = 0; first < rows.count; first = end) {
    const DirectionKind kind = kind_of(rows.directions[first], rows.roundings[first], measured);
    while (end < rows.count &&
           kind_of(rows.directions[end], rows.roundings[end], measured) == kind) {
      ++end;
    }
    with_kind(kind, [&](auto tag) { body(tag, first, end); });
  }
}

// ((noise + offset) mod 65536 + 0.5) / 65536, exactly: a float in [1, 2), less what it has too
// much. Both as_fraction().
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
        offset_(static_cast<std::int32_t>(rounding.offset)),
        negative_scale_(-rounding.scale * direction.factor),
        limit_(rounding.limit) {}

  I32 at(std::int64_t i) const { return clamp(rounded(i), I32(-limit_), I32(limit_)); }
  I16 words(std::int64_t i) const {
    const auto most = static_cast<std::int16_t>(limit_);
    return clamp(narrow(rounded(i), rounded(i + kStep)), I16(static_cast<std::int16_t>(-most)),
                 I16(most));
  }
  // For limits up to 127.
  [[gnu::always_inline]] I8 bytes(std::int64_t i) const {
    return limited(
        narrow(rounded(i), rounded(i + kStep), rounded(i + 2 * kStep), rounded(i + 3 * kStep)));
  }
  // Of the first `count` numbers from i on, and others that move nothing.
  I8 first_bytes(std::int64_t i, std::int64_t count) const {
    I32 parts[4];
    for (I32& part : parts) {
      const std::int64_t here = std::clamp<std::int64_t>(count, 0, kStep);
      const bool reads_noise = noise_ != nullptr && here > 0;
      part = rounded(direction_.first(i, here),
                     reads_noise ? read_first(bits_at(i), here, I32(0)) : I32(0));
      i += kStep;
      count -= kStep;
    }
    return limited(narrow(parts[0], parts[1], parts[2], parts[3]));
  }

 private:
  static constexpr std::int64_t kStep = kLanes<I32>;

  const std::int32_t* bits_at(std::int64_t i) const {
    return reinterpret_cast<const std::int32_t*>(noise_) + i;
  }
  [[gnu::always_inline]] I8 limited(const I8& levels) const {
    const auto most = static_cast<std::int8_t>(limit_);
    return clamp(levels, I8(static_cast<std::int8_t>(-most)), I8(most));
  }
  [[gnu::always_inline]] I32 rounded(std::int64_t i) const {
    return rounded(direction_.at(i), noise_ == nullptr ? I32(0) : read<I32>(bits_at(i)));
  }
  // Not limited yet, but for what no integer could hold.
  [[gnu::always_inline]] I32 rounded(const F32& number, const I32& noise) const {
    F32 exact = negative_scale_ * number;
    if (noise_ != nullptr) exact += noise_from_bits(noise, offset_);
    if constexpr (Source::kSmall) {
      return noise_ == nullptr ? nearest_of_small(exact) : floor_of_small(exact);
    }
    // What is too small for an integer becomes the smallest one; NaN becomes 0.
    const F32 limited = xsimd::min(F32(0x1p30f), exact);
    return noise_ == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
  }

  Source direction_;
  const std::uint32_t* noise_;
  I32 offset_;
  F32 negative_scale_;
  int limit_;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
