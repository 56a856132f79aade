// Codecs of formats with 4 to 8 bits, written once as scalar loops.
//
// reference.cpp compiles them as the specification, every target file for its instruction set: the
// compiler makes the vectors. (Whole groups of integers are encoded by groups-inl.h there.) Bits
// are equal everywhere because nothing here depends on the order of operations: + - * /,
// comparisons, integers, and no call into a library. The contracts are those of
// engine/kernels/codecs.h.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// ---- packed codes ------------------------------------------------------------------------------

void pack_codes(std::uint8_t* __restrict packed, const std::int8_t* __restrict codes, int bits,
                int max_code, std::int64_t n) {
  const int offset = 1 << (bits - 1);
  const std::int64_t half = (n + 1) / 2;
  const auto number = [=](std::int8_t code) {
    return (code > max_code ? max_code : code < -max_code ? -max_code : code) + offset;
  };
  for (std::int64_t j = 0; j < half; ++j) {
    packed[j] = static_cast<std::uint8_t>(number(codes[j]) & 15);
  }
  for (std::int64_t j = 0; j < n - half; ++j) {
    packed[j] = static_cast<std::uint8_t>(packed[j] | number(codes[half + j]) << 4);
  }
  if (bits == 4) return;
  std::uint8_t* __restrict high = packed + half;
  const int width = bits - 4;
  const int stripes = 8 / width;
  const std::int64_t stripe = (n + stripes - 1) / stripes;
  for (std::int64_t j = 0; j < stripe; ++j) high[j] = 0;
  for (int k = 0; k * stripe < n; ++k) {
    const std::int8_t* __restrict in = codes + k * stripe;
    const std::int64_t end = n - k * stripe < stripe ? n - k * stripe : stripe;
    const int shift = k * width;
    for (std::int64_t j = 0; j < end; ++j) {
      high[j] = static_cast<std::uint8_t>(high[j] | (number(in[j]) >> 4) << shift);
    }
  }
}

void unpack_codes(std::int8_t* __restrict codes, const std::uint8_t* __restrict packed, int bits,
                  int max_code, std::int64_t n) {
  const int offset = 1 << (bits - 1);
  const std::int64_t half = (n + 1) / 2;
  for (std::int64_t j = 0; j < half; ++j) codes[j] = static_cast<std::int8_t>(packed[j] & 15);
  for (std::int64_t j = 0; j < n - half; ++j) {
    codes[half + j] = static_cast<std::int8_t>(packed[j] >> 4);
  }
  if (bits > 4) {
    const std::uint8_t* __restrict high = packed + half;
    const int width = bits - 4;
    const int stripes = 8 / width;
    const int mask = (1 << width) - 1;
    const std::int64_t stripe = (n + stripes - 1) / stripes;
    for (int k = 0; k * stripe < n; ++k) {
      std::int8_t* __restrict out = codes + k * stripe;
      const std::int64_t end = n - k * stripe < stripe ? n - k * stripe : stripe;
      const int shift = k * width;
      for (std::int64_t j = 0; j < end; ++j) {
        out[j] = static_cast<std::int8_t>(out[j] | ((high[j] >> shift) & mask) << 4);
      }
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = codes[i] - offset;
    const int below = code < max_code ? code : max_code;
    codes[i] = static_cast<std::int8_t>(below > -max_code ? below : -max_code);
  }
}

// ---- numbers with a shared scale ---------------------------------------------------------------

constexpr std::int32_t kMagnitudeBits = 0x7FFFFFFF;
constexpr std::int32_t kInfinityBits = 0x7F800000;
constexpr std::int32_t kLargestBits = 0x7F7FFFFF;

// The largest magnitude, infinity counting as the largest float and NaN as 0. Magnitudes are
// ordered like their bits, and a maximum of integers may be taken in any order.
float largest_magnitude(const float* __restrict x, std::int64_t n) {
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(x[i]) & kMagnitudeBits;
    const std::int32_t number = bits > kInfinityBits ? 0 : bits;
    const std::int32_t finite = number < kLargestBits ? number : kLargestBits;
    largest = finite > largest ? finite : largest;
  }
  return std::bit_cast<float>(largest);
}

// The bf16 scale with which `top`, the largest number of the code, stands for `largest`.
std::uint16_t shared_scale(float largest, float top, bool stochastic) {
  // Below, the scale itself would lose bits.
  if (largest < top * std::numeric_limits<float>::min()) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(largest / top);
  const std::uint32_t rounded = (bits + (stochastic ? 0xFFFFu : 0x7FFFu + (bits >> 16 & 1u))) >> 16;
  // Above, top * scale would be infinite.
  const std::uint32_t highest =
      std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max() / top) >> 16;
  return static_cast<std::uint16_t>(rounded < highest ? rounded : highest);
}

// ---- integers in groups ------------------------------------------------------------------------

constexpr std::int64_t kCodesPerScale = 32;

// Calls body(first element, elements) for each group. The number is a constant but for the last
// group: loops of an unknown number of turns would seldom get to their vectors.
template <typename Body>
[[gnu::always_inline]] inline void for_each_group(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kCodesPerScale <= n; i += kCodesPerScale) {
    body(i, std::integral_constant<std::int64_t, kCodesPerScale>());
  }
  if (i < n) body(i, n - i);
}

void encode_group(std::int8_t* __restrict codes, const float* __restrict x, float scale, float top,
                  const std::uint16_t* __restrict noise, std::int64_t n) {
  if (scale == 0.0f) {
    for (std::int64_t i = 0; i < n; ++i) codes[i] = 0;
  } else if (noise == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) {
      codes[i] = static_cast<std::int8_t>(round_to_int(clip(x[i] / scale, top)));
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const float level = clip(x[i] / scale, top) + uniform_of(noise[i]);
      codes[i] = static_cast<std::int8_t>(floor_to_int(level));
    }
  }
}

void encode_groups(std::int8_t* codes, std::uint16_t* scales, const float* x, int max_code,
                   const std::uint16_t* noise, std::int64_t n) {
  const auto top = static_cast<float>(max_code);
  for_each_group(n, [=](std::int64_t i, std::int64_t count) {
    const std::uint16_t scale =
        shared_scale(largest_magnitude(x + i, count), top, noise != nullptr);
    scales[i / kCodesPerScale] = scale;
    encode_group(codes + i, x + i, float_of_bf16(scale), top,
                 noise == nullptr ? nullptr : noise + i, count);
  });
}

void decode_groups(float* __restrict out, const std::int8_t* __restrict codes,
                   const std::uint16_t* __restrict scales, int max_code, std::int64_t n) {
  for_each_group(
      n, [=](std::int64_t begin, auto count) __attribute__((always_inline)) {
        const float scale = float_of_bf16(scales[begin / kCodesPerScale]);
        for (std::int64_t i = begin; i < begin + count; ++i) {
          const std::int32_t below = codes[i] < max_code ? codes[i] : max_code;
          out[i] = static_cast<float>(below > -max_code ? below : -max_code) * scale;
        }
      });
}

// ---- fp8 (e4m3fn) ------------------------------------------------------------------------------

constexpr float kFp8Max = 448.0f;
constexpr float kFp8SmallestNormal = 0x1p-6f;
// An exponent of 0 in fp32 is 2^-127, in fp8 2^-7; 20 bits of the fp32 mantissa are dropped.
constexpr std::uint32_t kFp8Rebias = 120u << 3;

// Magnitude at most kFp8Max and no NaN. `noise` < 2^16 is spread over the 20 dropped bits, so that
// it rounds up as often as they say; a number of the format has none of them and stays.
std::uint32_t fp8_stochastic(float magnitude, std::uint32_t noise) {
  const std::uint32_t added = noise << 4 | 8u;
  // Below the smallest normal the grid is 2^-9: the same dither on the fixed-point number.
  const std::uint32_t normal =
      ((std::bit_cast<std::uint32_t>(magnitude) + added) >> 20) - kFp8Rebias;
  const bool is_small = magnitude < kFp8SmallestNormal;
  const float fixed = is_small ? magnitude * 0x1p29f : 0.0f;
  const std::uint32_t small =
      (static_cast<std::uint32_t>(static_cast<std::int32_t>(fixed)) + added) >> 20;
  return is_small ? small : normal;
}

std::uint32_t fp8_nearest(float magnitude) {
  const auto bits = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t normal = ((bits + 0x7FFFFu + (bits >> 20 & 1u)) >> 20) - kFp8Rebias;
  // The last place of 2^14 is 2^-9, the grid below the smallest normal: the addition rounds.
  constexpr float shift = 0x1p14f;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(magnitude + shift) - std::bit_cast<std::uint32_t>(shift);
  return magnitude < kFp8SmallestNormal ? small : normal;
}

// |x / scale| as far as fp8 goes; 0 for NaN, which is put in afterwards.
float fp8_magnitude(float x, float divisor, bool is_zero) {
  const float magnitude = std::bit_cast<float>(std::bit_cast<std::int32_t>(x) & kMagnitudeBits);
  return is_zero ? 0.0f : clip(magnitude / divisor, kFp8Max);
}

std::uint8_t fp8_code(float x, std::uint32_t magnitude_code) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t code = x == x ? magnitude_code : 0x7Fu;
  return static_cast<std::uint8_t>(code | (bits >> 24 & 0x80u));
}

void encode_fp8(std::uint8_t* __restrict codes, std::uint16_t* __restrict scale,
                const float* __restrict x, const std::uint16_t* __restrict noise, std::int64_t n) {
  *scale = shared_scale(largest_magnitude(x, n), kFp8Max, noise != nullptr);
  const bool is_zero = *scale == 0;
  const float divisor = is_zero ? 1.0f : float_of_bf16(*scale);
  if (noise == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) {
      codes[i] = fp8_code(x[i], fp8_nearest(fp8_magnitude(x[i], divisor, is_zero)));
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      codes[i] = fp8_code(x[i], fp8_stochastic(fp8_magnitude(x[i], divisor, is_zero), noise[i]));
    }
  }
}

void decode_fp8(float* __restrict out, const std::uint8_t* __restrict codes, std::uint16_t scale,
                std::int64_t n) {
  const float factor = float_of_bf16(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = codes[i] & 0x7Fu;
    const float normal = std::bit_cast<float>((magnitude << 20) + (120u << 23));
    const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-9f;
    const float number = magnitude < 8 ? small : normal;
    const std::uint32_t bits =
        magnitude == 0x7F ? 0x7FC00000u : std::bit_cast<std::uint32_t>(number);
    out[i] = std::bit_cast<float>(bits | (codes[i] & 0x80u) << 24) * factor;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
