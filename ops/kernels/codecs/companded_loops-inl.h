// Companded numbers: groups of 32 codes under a scale of 16 bits, in plain scalar loops that the
// compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). A curve gives the
// magnitude that a code means as a share of the scale, and the code, not rounded, that a share lies
// at. Rounding to nearest rounds that code, as FlashOptim does. Stochastic rounding must be right
// in the mean, so it measures the number against the decoded magnitudes on both sides.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/kernels/codecs.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Signed: the share is z / (2 - z) with z = code / 127.
struct SoftsignCurve {
  using Code = std::int8_t;
  static constexpr int kTop = 127;
  static constexpr bool kSigned = true;

  static float share(float code) { return code / (254.0f - code); }
  // z = 2 r / (1 + r)
  static float code(float share) { return 254.0f * share / (1.0f + share); }
};

// Unsigned: the share is the square of code / 255.
struct RootCurve {
  using Code = std::uint8_t;
  static constexpr int kTop = 255;
  static constexpr bool kSigned = false;

  static float share(float code) { return code * code * (1.0f / 65025.0f); }
  static float code(float share) { return 255.0f * __builtin_sqrtf(share); }
};

constexpr std::uint32_t kFp32Infinity = 0x7F800000u;

// Scales have no sign: the upper 16 of the 31 bits below it, 8 of exponent and 8 of mantissa.
constexpr std::uint32_t kQuietNanScale = 0xFF80u;
constexpr std::uint32_t kLargestGroupScale = 0xFEFFu;
[[gnu::always_inline]] inline float float_of_scale(std::uint32_t bits) {
  return std::bit_cast<float>(bits << 15);
}

// The bits of the largest magnitude.
template <typename Curve>
[[gnu::always_inline]] inline std::uint32_t largest_bits(const float* in, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // Without a sign, a negative number is as wrong as an infinite one, and looks larger; + 0 makes
    // the negative zero a positive one.
    const std::uint32_t sign = Curve::kSigned ? 0x7FFFFFFFu : 0xFFFFFFFFu;
    largest = std::max(largest, std::bit_cast<std::uint32_t>(in[i] + 0.0f) & sign);
  }
  return largest;
}

// ---- rounding to nearest -----------------------------------------------------------------------

// Groups whose scales are chosen together, and how to make shares of them: twice a product, so that
// neither factor leaves the range of fp32.
constexpr std::int64_t kGroupsTogether = 16;
struct GroupShares {
  float up[kGroupsTogether], inverse[kGroupsTogether];
  int mask[kGroupsTogether];  // -1, or 0 for a group that is not finite
};

template <typename Curve>
GroupShares choose_scales(std::uint16_t* scales, const std::uint32_t* largest,
                          std::int64_t groups) {
  GroupShares shares;
  int wide[kGroupsTogether];
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::uint32_t bits = largest[g];
    const bool is_finite = bits < kFp32Infinity;
    std::uint32_t rounded =
        std::min((bits + 0x3FFFu + (bits >> 15 & 1u)) >> 15, kLargestGroupScale);
    // A positive number stays positive, also below the smallest scale.
    if (!Curve::kSigned) rounded = std::max(rounded, bits > 0 ? 1u : 0u);
    const float scale = float_of_scale(rounded);
    const float top = std::bit_cast<float>(bits);
    // The scale of subnormals may be so much larger that the largest would miss the top code.
    const float whole = rounded < 0x100u && top < scale ? top : scale;
    const float up = whole < 0x1p-100f ? 0x1p64f : 1.0f;
    const float inverse = 1.0f / (whole * up);
    shares.up[g] = up;
    shares.inverse[g] = whole > 0.0f && is_finite ? inverse : 0.0f;
    shares.mask[g] = is_finite ? -1 : 0;
    wide[g] = static_cast<int>(is_finite ? rounded : kQuietNanScale);
  }
  for (std::int64_t g = 0; g < groups; ++g) scales[g] = static_cast<std::uint16_t>(wide[g]);
  return shares;
}

template <typename Curve>
[[gnu::always_inline]] inline void encode_nearest(int* codes, const float* in, float up,
                                                  float inverse, int mask, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const int bits = std::bit_cast<int>(in[i]);
    const int sign = Curve::kSigned ? bits >> 31 : 0;
    const float magnitude = std::bit_cast<float>(Curve::kSigned ? bits & 0x7FFFFFFF : bits);
    int code = std::min(round_to_int(Curve::code(magnitude * up * inverse)), Curve::kTop);
    // A positive number never has code 0 without a sign.
    if constexpr (!Curve::kSigned) code = std::max(code, magnitude > 0.0f ? 1 : 0);
    codes[i] = ((code ^ sign) - sign) & mask;
  }
}

template <typename Curve>
void encode_all_nearest(typename Curve::Code* codes, std::uint16_t* scales, const float* in,
                        std::int64_t n) {
  constexpr std::int64_t kTogether = kGroupsTogether * kCompandedGroup;
  for (std::int64_t begin = 0; begin < n; begin += kTogether) {
    const std::int64_t count = std::min(kTogether, n - begin);
    const std::int64_t whole = count / kCompandedGroup;
    const std::int64_t rest = count % kCompandedGroup;
    const std::int64_t groups = whole + (rest > 0);
    const float* x = in + begin;
    std::uint32_t largest[kGroupsTogether];
    // A known length lets the compiler drop what handles the rest of a vector.
    for (std::int64_t g = 0; g < whole; ++g) {
      largest[g] = largest_bits<Curve>(x + g * kCompandedGroup, kCompandedGroup);
    }
    if (rest > 0) largest[whole] = largest_bits<Curve>(x + whole * kCompandedGroup, rest);
    const GroupShares shares =
        choose_scales<Curve>(scales + begin / kCompandedGroup, largest, groups);
    // All arithmetic on 32-bit lanes; narrowing in the same loop would quadruple its registers.
    int wide[kTogether];
    for (std::int64_t g = 0; g < whole; ++g) {
      encode_nearest<Curve>(wide + g * kCompandedGroup, x + g * kCompandedGroup, shares.up[g],
                            shares.inverse[g], shares.mask[g], kCompandedGroup);
    }
    if (rest > 0) {
      encode_nearest<Curve>(wide + whole * kCompandedGroup, x + whole * kCompandedGroup,
                            shares.up[whole], shares.inverse[whole], shares.mask[whole], rest);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      codes[begin + i] = static_cast<typename Curve::Code>(wide[i]);
    }
  }
}

// ---- stochastic rounding -----------------------------------------------------------------------

// The scale of a group, and how numbers between the scales around its largest become shares
// of it.
struct GroupScale {
  std::uint16_t bits;
  float scale;
  float lower;    // the scale at or below the group's largest
  float stretch;  // of what exceeds `lower`
};

// `largest`: the bits of the largest magnitude, finite. Rounds it to a scale, up where the noise
// says so, hence with the right mean. If the scale is above the largest, then [lower, largest] is
// stretched to [lower, scale], otherwise it is clipped to `lower`. So the largest number always has
// the top code, and decoding finds the same scale; and if the scale has the right mean, then so has
// every number.
template <typename Curve>
GroupScale draw_scale(std::uint32_t largest, std::uint16_t noise) {
  std::uint32_t kept = largest >> 15;
  std::uint32_t rounded = std::min((largest + (noise >> 1)) >> 15, kLargestGroupScale);
  if (!Curve::kSigned && largest > 0) {
    // A positive number stays positive, also below the smallest scale.
    kept = std::max(kept, 1u);
    rounded = std::max(rounded, 1u);
  }
  const float lower = float_of_scale(kept);
  const float scale = float_of_scale(rounded);
  const float above = std::bit_cast<float>(largest) - lower;
  return {static_cast<std::uint16_t>(rounded), scale, lower,
          rounded > kept ? (scale - lower) / above : 0.0f};
}

// Inlined, or the loop around it would not become vectors.
template <typename Curve>
[[gnu::always_inline]] inline int encode_stochastic(float x, GroupScale group, float threshold) {
  const float magnitude = x < 0.0f ? -x : x;
  const float beyond = magnitude > group.lower ? magnitude - group.lower : 0.0f;
  const float within = magnitude > group.lower ? group.lower : magnitude;
  const float target = within + beyond * group.stretch;
  // The guess may err at the edge of a code, where the choice below then makes up for it.
  const float guess = Curve::code(target / group.scale);
  // A group of zeros guesses NaN, which is not above zero.
  const float low = guess > 0.0f ? guess : 0.0f;
  int code = std::min(static_cast<int>(low < 255.0f ? low : 255.0f), Curve::kTop - 1);
  const float below = group.scale * Curve::share(static_cast<float>(code));
  const float above = group.scale * Curve::share(static_cast<float>(code + 1));
  code += (target - below) / (above - below) >= threshold;
  if constexpr (!Curve::kSigned) code += code == 0 && magnitude > 0.0f;
  return Curve::kSigned && x < 0.0f ? -code : code;
}

template <typename Curve>
[[gnu::always_inline]] inline void encode_stochastic(typename Curve::Code* codes,
                                                     std::uint16_t* scale, const float* in,
                                                     const std::uint16_t* noise,
                                                     std::uint16_t scale_noise, std::int64_t n) {
  const std::uint32_t largest = largest_bits<Curve>(in, n);
  if (largest >= kFp32Infinity) {
    *scale = kQuietNanScale;
    for (std::int64_t i = 0; i < n; ++i) codes[i] = 0;
    return;
  }
  const GroupScale group = draw_scale<Curve>(largest, scale_noise);
  *scale = group.bits;
  int wide[kCompandedGroup];
  float thresholds[kCompandedGroup];
  for (std::int64_t i = 0; i < n; ++i) {
    thresholds[i] = uniform_of(noise[i]);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    wide[i] = encode_stochastic<Curve>(in[i], group, thresholds[i]);
  }
  for (std::int64_t i = 0; i < n; ++i) codes[i] = static_cast<typename Curve::Code>(wide[i]);
}

template <typename Curve>
void encode_companded_groups(typename Curve::Code* codes, std::uint16_t* scales, const float* in,
                             const std::uint16_t* noise, const std::uint16_t* scale_noise,
                             std::int64_t n) {
  if (noise == nullptr) return encode_all_nearest<Curve>(codes, scales, in, n);
  for (std::int64_t i = 0; i < n; i += kCompandedGroup) {
    const std::int64_t g = i / kCompandedGroup;
    if (n - i >= kCompandedGroup) {
      encode_stochastic<Curve>(codes + i, scales + g, in + i, noise + i, scale_noise[g],
                               kCompandedGroup);
    } else {
      encode_stochastic<Curve>(codes + i, scales + g, in + i, noise + i, scale_noise[g], n - i);
    }
  }
}

// ---- both --------------------------------------------------------------------------------------

template <typename Curve>
void decode_group(float* out, const typename Curve::Code* codes, float scale, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = codes[i];
    const float share = Curve::share(static_cast<float>(code < 0 ? -code : code));
    out[i] = scale * (code < 0 ? -share : share);
  }
}

template <typename Curve>
void decode_companded_groups(float* out, const typename Curve::Code* codes,
                             const std::uint16_t* scales, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kCompandedGroup) {
    const float scale = float_of_scale(scales[i / kCompandedGroup]);
    if (n - i >= kCompandedGroup) {
      decode_group<Curve>(out + i, codes + i, scale, kCompandedGroup);
    } else {
      decode_group<Curve>(out + i, codes + i, scale, n - i);
    }
  }
}

void encode_companded(std::int8_t* codes, std::uint16_t* scales, const float* in,
                      const std::uint16_t* noise, const std::uint16_t* scale_noise,
                      std::int64_t n) {
  encode_companded_groups<SoftsignCurve>(codes, scales, in, noise, scale_noise, n);
}

void decode_companded(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                      std::int64_t n) {
  decode_companded_groups<SoftsignCurve>(out, codes, scales, n);
}

void encode_root(std::uint8_t* codes, std::uint16_t* scales, const float* in,
                 const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n) {
  encode_companded_groups<RootCurve>(codes, scales, in, noise, scale_noise, n);
}

void decode_root(float* out, const std::uint8_t* codes, const std::uint16_t* scales,
                 std::int64_t n) {
  decode_companded_groups<RootCurve>(out, codes, scales, n);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
