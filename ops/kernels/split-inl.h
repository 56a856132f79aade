// split8, rounded to nearest, for ordinary numbers; all others go through split_loops-inl.h.
//
// Where a number is finite, and its value is not zero, sums of fp32 bits as they are, sign
// included, do what the loops do with magnitudes.
#pragma once

#include <algorithm>

#include "ops/kernels/codec_verbs-inl.h"
#include "ops/kernels/split_loops-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// The distance d from the bf16 number below decides the correction round(127 d / 32768). 127 would
// mean the middle between two bf16 numbers, which belongs to the even one. All d from 32639 to
// 32897 are rounded to 127, so those too go to the even one.
constexpr unsigned kUpFromOdd = 65536 - 32639;
constexpr unsigned kUpFromEven = 65536 - 32898;

void encode_split8(std::uint16_t* value, std::int8_t* correction, const float* in,
                   const std::uint16_t* noise, std::int64_t n) {
  if (noise != nullptr) return TRITGRAD_TARGET::encode_split8(value, correction, in, noise, n);
  constexpr int kLargest = ((kBf16Infinity - 1) << 16) + Correction8::distance(126);
  const U32 sign(0x80000000u), magnitude(0x7FFFFFFFu), upper(0xFFFF0000u), odd(0x10000u);
  const U32 from_even(kUpFromEven), more_from_odd(kUpFromOdd - kUpFromEven);
  const U32 scale = xsimd::bitwise_cast<U32>(F32(127.0f / 32768.0f));
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    read_ahead(value + i, kFourVectors);
    I32 code[4];
    U32 rounded[2];
    U32 largest(0u);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const U32 bits = xsimd::bitwise_cast<U32>(read<F32>(in + i + k * kLanes<F32>));
      largest = xsimd::max(largest, bits & magnitude);
      const auto is_even = (bits & odd) == U32(0u);
      rounded[k % 2] = bits + from_even + xsimd::select(is_even, U32(0u), more_from_odd);
      const I32 distance = xsimd::bitwise_cast<I32>(bits - (rounded[k % 2] & upper));
      const F32 outwards = xsimd::bitwise_cast<F32>(blend_bits(sign, bits, scale));
      code[k] = round_to_i32(xsimd::to_float(distance) * outwards);
      if (k % 2 == 1) write_upper_halves(value + i + (k - 1) * kLanes<F32>, rounded);
    }
    write_bytes(correction + i, code);
    if (xsimd::any(xsimd::bitwise_cast<I32>(largest) > I32(kLargest))) {
      TRITGRAD_TARGET::encode_split8(value + i, correction + i, in + i, nullptr, kFourVectors);
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::encode_split8(value + i, correction + i, in + i, nullptr, n - i);
}

void decode_split8(float* out, const std::uint16_t* value, const std::int8_t* correction,
                   std::int64_t n) {
  const U32 sign(0x80000000u), scale = xsimd::bitwise_cast<U32>(F32(32768.0f / 127.0f));
  // Twice the magnitude of the value, less 0x8001, in 16 bits: from 0x7EFF on as a signed number it
  // was an infinity, a NaN, or, turned round, a zero.
  const I16 turn(static_cast<std::int16_t>(0x8001 - 0x10000)), limit(std::int16_t{0x7EFE});
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    I16 largest(std::numeric_limits<std::int16_t>::min());
    for (int k = 0; k < 2; ++k) {
      const I16 bits =
          read<I16>(reinterpret_cast<const std::int16_t*>(value + i + k * kLanes<I16>));
      largest = xsimd::max(largest, bits + bits - turn);
    }
    if (xsimd::any(largest > limit)) {
      TRITGRAD_TARGET::decode_split8(out + i, value + i, correction + i, kFourVectors);
      continue;
    }
    read_ahead(correction + i, kFourVectors);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = i + k * kLanes<F32>;
      const U32 bits = xsimd::bitwise_cast<U32>(read_i32(value + at)) << 16;
      const F32 outwards = xsimd::bitwise_cast<F32>(blend_bits(sign, bits, scale));
      const I32 distance = round_to_i32(xsimd::to_float(read_i32(correction + at)) * outwards);
      write(out + at, xsimd::bitwise_cast<F32>(bits + xsimd::bitwise_cast<U32>(distance)));
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::decode_split8(out + i, value + i, correction + i, n - i);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
