// Split numbers: bf16 and a correction, in plain scalar loops that the compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). All of it is arithmetic
// on magnitudes read as integers: the upper half of an fp32 number is a bf16 number, and the lower
// half is its distance in units of fp32 from the bf16 number below. With N = 127 or 32767, the
// correction c stands for c / N of 32768 such units, half the distance to the neighbouring bf16
// number on that side. Subnormals and powers of two need no care.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/kernels/codecs.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr int kBf16Infinity = 0x7F80;

// How each width turns distances, 0..32768, into codes 0..N and back.
struct Correction8 {
  using Code = std::int8_t;
  static constexpr int kTop = 127;

  // N / 32768 of the distance, 22 bits: exact.
  static int nearest(int distance) {
    return round_to_int(static_cast<float>(distance) * (127.0f / 32768.0f));
  }
  // A number that fp32 cannot tell from a code is that code: a master read and written back stays.
  static int stochastic(int distance, unsigned noise) {
    const float position = static_cast<float>(distance) * (127.0f / 32768.0f);
    const int code = round_to_int(position);
    const float off = position - static_cast<float>(code);
    const auto chosen = static_cast<int>(position + static_cast<float>(noise) * 0x1p-16f);
    return (off < 0.0f ? -off : off) <= 127.0f / 65536.0f ? code : chosen;
  }
  // Never near a tie, as 127 is odd: two roundings in fp32 do no harm.
  static constexpr int distance(int code) {
    return round_to_int(static_cast<float>(code) * (32768.0f / 127.0f));
  }
};

// N is one short of 32768: codes are distances, but for the upper half of one less.
struct Correction16 {
  using Code = std::int16_t;
  static constexpr int kTop = 32767;

  static int nearest(int distance) { return distance - (distance > 16384); }
  static constexpr int distance(int code) { return code + (code >= 16384); }
};

// Arithmetic and narrowing are loops of their own: together they would need four times the
// registers.
constexpr std::int64_t kSplitChunk = 64;

template <typename Correction, bool kStochastic>
[[gnu::always_inline]] inline void encode_split_chunk(std::uint16_t* value,
                                                      typename Correction::Code* correction,
                                                      const float* in, const std::uint16_t* noise,
                                                      std::int64_t n) {
  int wide_value[kSplitChunk];
  int wide_code[kSplitChunk];
  // From beyond, rounding could lead to the middle between the largest bf16 number and infinity.
  constexpr int kLargest = ((kBf16Infinity - 1) << 16) + Correction::distance(Correction::kTop - 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const int bits = std::bit_cast<int>(in[i]);
    const int sign = bits >> 31;
    const int magnitude = std::min(bits & 0x7FFFFFFF, kLargest);
    const int nearest = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
    const int distance = magnitude - (nearest << 16);
    const int below = distance >> 31;
    const int size = (distance ^ below) - below;
    int code;
    if constexpr (kStochastic) {
      code = Correction::stochastic(size, noise[i]);
    } else {
      code = Correction::nearest(size);
    }
    // The middle between two bf16 numbers has two names. It belongs to the even one, as whoever
    // encodes it again will find.
    const int tie = (Correction::kTop - 1 - code) >> 31 & -(nearest & 1);
    const int value_bits = (nearest + (tie & (below | 1))) | (sign & 0x8000);
    const int negative = below ^ tie ^ sign;
    const int code_bits = (code ^ negative) - negative;
    const bool is_finite = (bits & 0x7FFFFFFF) < kBf16Infinity << 16;
    const int quiet = (bits & 0x7FFFFFFF) > kBf16Infinity << 16 ? 0x40 : 0;
    wide_value[i] = is_finite ? value_bits : bits >> 16 | quiet;
    wide_code[i] = is_finite ? code_bits : 0;
  }
  for (std::int64_t i = 0; i < n; ++i) value[i] = static_cast<std::uint16_t>(wide_value[i]);
  for (std::int64_t i = 0; i < n; ++i) {
    correction[i] = static_cast<typename Correction::Code>(wide_code[i]);
  }
}

template <typename Correction, bool kStochastic>
void encode_split_loop(std::uint16_t* value, typename Correction::Code* correction, const float* in,
                       const std::uint16_t* noise, std::int64_t n) {
  std::int64_t i = 0;
  // A known length lets the compiler drop what handles the rest of a vector.
  for (; i + kSplitChunk <= n; i += kSplitChunk) {
    encode_split_chunk<Correction, kStochastic>(value + i, correction + i, in + i,
                                                kStochastic ? noise + i : nullptr, kSplitChunk);
  }
  encode_split_chunk<Correction, kStochastic>(value + i, correction + i, in + i,
                                              kStochastic ? noise + i : nullptr, n - i);
}

template <typename Correction>
[[gnu::always_inline]] inline void decode_split_chunk(float* out, const std::uint16_t* value,
                                                      const typename Correction::Code* correction,
                                                      std::int64_t n) {
  int wide_value[kSplitChunk];
  int wide_code[kSplitChunk];
  for (std::int64_t i = 0; i < n; ++i) wide_value[i] = value[i];
  for (std::int64_t i = 0; i < n; ++i) wide_code[i] = correction[i];
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = wide_code[i];
    const int distance = Correction::distance(code < 0 ? -code : code);
    const int upper = wide_value[i] << 16;
    const int sign = upper >> 31;
    const bool is_outwards = (code ^ sign) >= 0;
    const int moved = (upper & 0x7FFFFFFF) + (is_outwards ? distance : -distance);
    // A correction of zero may point to the other side.
    const int other = moved >> 31;
    const int bits = ((moved ^ other) - other) | ((sign ^ other) & std::numeric_limits<int>::min());
    const bool is_finite = (upper & 0x7FFFFFFF) < kBf16Infinity << 16;
    out[i] = std::bit_cast<float>(is_finite ? bits : upper);
  }
}

template <typename Correction>
void decode_split_loop(float* out, const std::uint16_t* value,
                       const typename Correction::Code* correction, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kSplitChunk <= n; i += kSplitChunk) {
    decode_split_chunk<Correction>(out + i, value + i, correction + i, kSplitChunk);
  }
  decode_split_chunk<Correction>(out + i, value + i, correction + i, n - i);
}

void encode_split8(std::uint16_t* value, std::int8_t* correction, const float* in,
                   const std::uint16_t* noise, std::int64_t n) {
  noise == nullptr ? encode_split_loop<Correction8, false>(value, correction, in, noise, n)
                   : encode_split_loop<Correction8, true>(value, correction, in, noise, n);
}

void encode_split16(std::uint16_t* value, std::int16_t* correction, const float* in,
                    std::int64_t n) {
  encode_split_loop<Correction16, false>(value, correction, in, nullptr, n);
}

void decode_split8(float* out, const std::uint16_t* value, const std::int8_t* correction,
                   std::int64_t n) {
  decode_split_loop<Correction8>(out, value, correction, n);
}

void decode_split16(float* out, const std::uint16_t* value, const std::int16_t* correction,
                    std::int64_t n) {
  decode_split_loop<Correction16>(out, value, correction, n);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
