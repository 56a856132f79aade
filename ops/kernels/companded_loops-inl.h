// Companded numbers: groups of 32 codes under a bf16 scale, in plain scalar loops that the compiler
// vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). A curve gives the
// magnitude that a code means as a share of the scale, and guesses the code below a magnitude. The
// guess may err at the edge of a code; rounding then measures the number against the magnitudes
// around the guess, as decode will compute them, so a decoded number is always found again exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Signed: the share is z / (2 - z) with z = code / 127.
struct SoftsignCurve {
  using Code = std::int8_t;
  static constexpr int kTop = 127;
  static constexpr bool kSigned = true;

  static float share(float code) { return code / (254.0f - code); }
  // z = 2 r / (1 + r) with r = magnitude / scale; in this order nothing overflows.
  static float guess(float magnitude, float scale) {
    return 127.0f * (magnitude / (0.5f * scale + 0.5f * magnitude));
  }
  // Whether r is nearer to share(code + 1) than to share(code): 2 r against their sum, both times
  // (254 - code) (253 - code).
  static bool is_above_middle(float r, float code) {
    const float a = 254.0f - code, b = 253.0f - code;
    return 2.0f * r * (a * b) >= code * b + (code + 1.0f) * a;
  }
};

// Unsigned: the share is the square of code / 255.
struct RootCurve {
  using Code = std::uint8_t;
  static constexpr int kTop = 255;
  static constexpr bool kSigned = false;

  static float share(float code) { return code * code / 65025.0f; }
  static float guess(float magnitude, float scale) {
    return 255.0f * __builtin_sqrtf(magnitude / scale);
  }
};

constexpr std::uint32_t kFp32Infinity = 0x7F800000u;
constexpr std::uint32_t kQuietNan16 = 0x7FC0u;

// The scale of a group, and how numbers between the bf16 numbers around its largest become shares
// of it.
struct GroupScale {
  std::uint16_t bits;
  float scale;
  float lower;    // the bf16 number at or below the group's largest
  float stretch;  // of what exceeds `lower`
};

// `largest`: the bits of the largest magnitude, finite. Rounds it to bf16: to nearest, or up where
// the noise says so, hence with the right mean. If the scale is above the largest, then [lower,
// largest] is stretched to [lower, scale], otherwise it is clipped to `lower`. So the largest
// number always has the top code, and decoding finds the same scale; and if the scale has the right
// mean, then so has every number.
template <typename Curve>
GroupScale choose_scale(std::uint32_t largest, const std::uint16_t* noise) {
  std::uint32_t kept = largest >> 16;
  const std::uint32_t added = noise == nullptr ? 0x7FFFu + (kept & 1u) : *noise;
  std::uint32_t rounded = std::min((largest + added) >> 16, 0x7F7Fu);
  if (!Curve::kSigned && largest > 0) {
    // A positive number stays positive, also below the smallest bf16 number.
    kept = std::max(kept, 1u);
    rounded = std::max(rounded, 1u);
  }
  const float lower = std::bit_cast<float>(kept << 16);
  const float scale = std::bit_cast<float>(rounded << 16);
  const float above = std::bit_cast<float>(largest) - lower;
  return {static_cast<std::uint16_t>(rounded), scale, lower,
          rounded > kept ? (scale - lower) / above : 0.0f};
}

// Inlined, or the loop around it would not become vectors.
template <typename Curve>
[[gnu::always_inline]] inline int encode_one(float x, GroupScale group, float threshold) {
  const float magnitude = x < 0.0f ? -x : x;
  const float beyond = magnitude > group.lower ? magnitude - group.lower : 0.0f;
  const float within = magnitude > group.lower ? group.lower : magnitude;
  const float target = within + beyond * group.stretch;
  const float guess = Curve::guess(target, group.scale);
  // A group of zeros guesses NaN, which is not above zero.
  const float low = guess > 0.0f ? guess : 0.0f;
  int code = std::min(static_cast<int>(low < 255.0f ? low : 255.0f), Curve::kTop - 1);
  const float below = group.scale * Curve::share(static_cast<float>(code));
  const float above = group.scale * Curve::share(static_cast<float>(code + 1));
  code += (target - below) / (above - below) >= threshold;
  if constexpr (!Curve::kSigned) code += code == 0 && magnitude > 0.0f;
  return Curve::kSigned && x < 0.0f ? -code : code;
}

// Signed, to the nearest, for scales whose inverse is an ordinary number: one division an element.
[[gnu::always_inline]] inline int encode_nearest(float x, GroupScale group, float inverse) {
  using Curve = SoftsignCurve;
  const float magnitude = x < 0.0f ? -x : x;
  const float beyond = magnitude > group.lower ? magnitude - group.lower : 0.0f;
  const float within = magnitude > group.lower ? group.lower : magnitude;
  const float r = (within + beyond * group.stretch) * inverse;
  const float guess = Curve::guess(r, 1.0f);
  constexpr float kLastBelow = Curve::kTop - 1;
  const float low = __builtin_floorf(guess < kLastBelow ? guess : kLastBelow);
  const float code = Curve::is_above_middle(r, low) ? low + 1.0f : low;
  return static_cast<int>(x < 0.0f ? -code : code);
}

template <typename Curve>
void encode_group(typename Curve::Code* codes, std::uint16_t* scale, const float* in,
                  const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // Without a sign, a negative number is as wrong as an infinite one, and looks larger; + 0 makes
    // the negative zero a positive one.
    const std::uint32_t sign = Curve::kSigned ? 0x7FFFFFFFu : 0xFFFFFFFFu;
    largest = std::max(largest, std::bit_cast<std::uint32_t>(in[i] + 0.0f) & sign);
  }
  if (largest >= kFp32Infinity) {
    *scale = kQuietNan16;
    for (std::int64_t i = 0; i < n; ++i) codes[i] = 0;
    return;
  }
  const GroupScale group = choose_scale<Curve>(largest, scale_noise);
  *scale = group.bits;
  // All arithmetic on 32-bit lanes; narrowing in the same loop would quadruple its registers.
  int wide[kCompandedGroup];
  float thresholds[kCompandedGroup];
  for (std::int64_t i = 0; i < n; ++i) {
    thresholds[i] = noise == nullptr ? 0.5f : (static_cast<float>(noise[i]) + 0.5f) * 0x1p-16f;
  }
  if (Curve::kSigned && noise == nullptr && group.scale > 0x1p-100f && group.scale < 0x1p100f) {
    const float inverse = 1.0f / group.scale;
    for (std::int64_t i = 0; i < n; ++i) wide[i] = encode_nearest(in[i], group, inverse);
  } else {
    for (std::int64_t i = 0; i < n; ++i) wide[i] = encode_one<Curve>(in[i], group, thresholds[i]);
  }
  for (std::int64_t i = 0; i < n; ++i) codes[i] = static_cast<typename Curve::Code>(wide[i]);
}

template <typename Curve>
void encode_groups(typename Curve::Code* codes, std::uint16_t* scales, const float* in,
                   const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kCompandedGroup) {
    const std::uint16_t* element_noise = noise == nullptr ? nullptr : noise + i;
    const std::uint16_t* group_noise =
        noise == nullptr ? nullptr : scale_noise + i / kCompandedGroup;
    std::uint16_t* scale = scales + i / kCompandedGroup;
    // A known length lets the compiler drop what handles the rest of a vector.
    if (n - i >= kCompandedGroup) {
      encode_group<Curve>(codes + i, scale, in + i, element_noise, group_noise, kCompandedGroup);
    } else {
      encode_group<Curve>(codes + i, scale, in + i, element_noise, group_noise, n - i);
    }
  }
}

template <typename Curve>
void decode_group(float* out, const typename Curve::Code* codes, float scale, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = codes[i];
    const float share = Curve::share(static_cast<float>(code < 0 ? -code : code));
    out[i] = scale * (code < 0 ? -share : share);
  }
}

template <typename Curve>
void decode_groups(float* out, const typename Curve::Code* codes, const std::uint16_t* scales,
                   std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kCompandedGroup) {
    const float scale =
        std::bit_cast<float>(static_cast<std::uint32_t>(scales[i / kCompandedGroup]) << 16);
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
  encode_groups<SoftsignCurve>(codes, scales, in, noise, scale_noise, n);
}

void decode_companded(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                      std::int64_t n) {
  decode_groups<SoftsignCurve>(out, codes, scales, n);
}

void encode_root(std::uint8_t* codes, std::uint16_t* scales, const float* in,
                 const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n) {
  encode_groups<RootCurve>(codes, scales, in, noise, scale_noise, n);
}

void decode_root(float* out, const std::uint8_t* codes, const std::uint16_t* scales,
                 std::int64_t n) {
  decode_groups<RootCurve>(out, codes, scales, n);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
