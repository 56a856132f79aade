// split8 and split16, rounded to nearest, for ordinary numbers; all others go through
// split_loops-inl.h.
//
// If a number is finite, and its value is not zero, sums of fp32 bits as they are, sign
// included, do what the loops do with magnitudes.
#pragma once

#include <algorithm>

#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/codecs/split_loops-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// The distance d from the bf16 number below decides the correction round(127 d / 32768). 127 would
// mean the middle between two bf16 numbers, which belongs to the even one. All d from 32639 to
// 32897 are rounded to 127, so those too go to the even one.
constexpr unsigned kUpFromOdd = 65536 - 32639;
constexpr unsigned kUpFromEven = 65536 - 32898;

// Whether all numbers that were looked at are finite, and none so large that its square is not. Of
// masters as decoded below, that is also whether they are what their bytes mean: those whose
// correction does not belong to their value are infinite, NaN or as large.
class OrdinarySplit {
 public:
  // Once infinite or NaN, a sum of squares stays so.
  void look_at(const F32& x) { sum_ = multiply_add(x, x, sum_); }
  bool all() const {
    const U32 magnitude = bits_as<U32>(sum_) & U32(0x7FFFFFFFu);
    return !any(bits_as<I32>(magnitude) >= I32(kBf16Infinity << 16));
  }

 private:
  F32 sum_ = F32(0.0f);
};

// kFourVectors numbers.
inline void encode_split8_at(std::uint16_t* value, std::int8_t* correction, const F32 (&in)[4]) {
  const U32 sign(0x80000000u), upper(0xFFFF0000u), odd(0x10000u);
  const U32 from_even(kUpFromEven), more_from_odd(kUpFromOdd - kUpFromEven);
  const U32 scale = bits_as<U32>(F32(127.0f / 32768.0f));
  I32 code[4];
  U32 rounded[2];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const U32 bits = bits_as<U32>(in[k]);
    const auto is_even = (bits & odd) == U32(0u);
    rounded[k % 2] = bits + from_even + select(is_even, U32(0u), more_from_odd);
    const I32 distance = bits_as<I32>(bits - (rounded[k % 2] & upper));
    const F32 outwards = bits_as<F32>(blend_bits(sign, bits, scale));
    code[k] = round_to_i32(to_float(distance) * outwards);
    if (k % 2 == 1) write_upper_halves(value + (k - 1) * kLanes<F32>, rounded);
  }
  write_bytes(correction, code);
}

void encode_split8(std::uint16_t* value, std::int8_t* correction, const float* in,
                   const std::uint16_t* noise, std::int64_t n) {
  if (noise != nullptr) return TRITGRAD_TARGET::encode_split8(value, correction, in, noise, n);
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    read_ahead(value + i, kFourVectors);
    OrdinarySplit ordinary;
    F32 x[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = read<F32>(in + i + k * kLanes<F32>);
      ordinary.look_at(x[k]);
    }
    encode_split8_at(value + i, correction + i, x);
    if (!ordinary.all()) {
      TRITGRAD_TARGET::encode_split8(value + i, correction + i, in + i, nullptr, kFourVectors);
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::encode_split8(value + i, correction + i, in + i, nullptr, n - i);
}

// A vector of numbers.
inline F32 decode_split8_at(const std::uint16_t* value, const std::int8_t* correction) {
  const U32 sign(0x80000000u), scale = bits_as<U32>(F32(32768.0f / 127.0f));
  const U32 bits = read_upper_halves(value);
  const F32 outwards = bits_as<F32>(blend_bits(sign, bits, scale));
  const I32 distance = round_to_i32(to_float(read_i32(correction)) * outwards);
  return bits_as<F32>(bits + bits_as<U32>(distance));
}

void decode_split8(float* out, const std::uint16_t* value, const std::int8_t* correction,
                   std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    OrdinarySplit ordinary;
    read_ahead(correction + i, kFourVectors);
#pragma GCC unroll 4
    for (std::int64_t at = i; at < i + kFourVectors; at += kLanes<F32>) {
      const F32 x = decode_split8_at(value + at, correction + at);
      ordinary.look_at(x);
      write(out + at, x);
    }
    if (!ordinary.all()) {
      TRITGRAD_TARGET::decode_split8(out + i, value + i, correction + i, kFourVectors);
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::decode_split8(out + i, value + i, correction + i, n - i);
}

// ---- split16 -----------------------------------------------------------------------------------
//
// Codes are distances in units of fp32, but for the upper half of one less.

inline I32 upper_half_of(const I32& distance, int from) {
  return one_if(distance > I32(from)) - one_if(distance < I32(-from));
}
// x with its sign changed where `sign` is -1, not 0.
inline I32 negated_where(const I32& sign, const I32& x) { return (x ^ sign) - sign; }

// Two vectors of numbers.
inline void encode_split16_at(std::uint16_t* value, std::int16_t* correction, const F32 (&in)[2]) {
  I32 code[2];
  U32 rounded[2];
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
    const U32 bits = bits_as<U32>(in[k]);
    rounded[k] = bits + U32(0x7FFFu) + ((bits >> 16) & U32(1u));
    const I32 distance = bits_as<I32>(bits - (rounded[k] & U32(0xFFFF0000u)));
    code[k] = negated_where(bits_as<I32>(bits) >> 31, distance - upper_half_of(distance, 16384));
  }
  write_upper_halves(value, rounded);
  write(correction, narrow(code[0], code[1]));
}

// A vector of numbers.
inline F32 decode_split16_at(const std::uint16_t* value, const std::int16_t* correction) {
  const I32 bits = bits_as<I32>(read_upper_halves(value)), code = read_i32(correction);
  return bits_as<F32>(bits + negated_where(bits >> 31, code + upper_half_of(code, 16383)));
}

void encode_split16(std::uint16_t* value, std::int16_t* correction, const float* in,
                    std::int64_t n) {
  constexpr std::int64_t kPair = 2 * kLanes<F32>;
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    read_ahead(value + i, kFourVectors);
    OrdinarySplit ordinary;
#pragma GCC unroll 2
    for (std::int64_t at = i; at < i + kFourVectors; at += kPair) {
      const F32 x[2] = {read<F32>(in + at), read<F32>(in + at + kLanes<F32>)};
      ordinary.look_at(x[0]);
      ordinary.look_at(x[1]);
      encode_split16_at(value + at, correction + at, x);
    }
    if (!ordinary.all()) {
      TRITGRAD_TARGET::encode_split16(value + i, correction + i, in + i, kFourVectors);
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::encode_split16(value + i, correction + i, in + i, n - i);
}

void decode_split16(float* out, const std::uint16_t* value, const std::int16_t* correction,
                    std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kFourVectors <= n; i += kFourVectors) {
    read_ahead(correction + i, kFourVectors);
    OrdinarySplit ordinary;
#pragma GCC unroll 4
    for (std::int64_t at = i; at < i + kFourVectors; at += kLanes<F32>) {
      const F32 x = decode_split16_at(value + at, correction + at);
      ordinary.look_at(x);
      write(out + at, x);
    }
    if (!ordinary.all()) {
      TRITGRAD_TARGET::decode_split16(out + i, value + i, correction + i, kFourVectors);
    }
  }
  if (i == n) return;
  TRITGRAD_TARGET::decode_split16(out + i, value + i, correction + i, n - i);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
