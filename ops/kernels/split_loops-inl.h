// Split numbers: bf16 and a correction, in plain scalar loops that the compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). All of it is integer
// arithmetic on magnitudes: read as an integer, the upper half of an fp32 number is a bf16 number,
// and the lower half is its distance in units of fp32 from the bf16 number below. With N = 127 or
// 32767, the correction c stands for c / N of half a bf16 unit, 32768 fp32 units; below a power of
// two, where fp32 units are half as large, for twice as many of them. Subnormals need no care.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

template <typename Code>
constexpr int kCodes = std::numeric_limits<Code>::max();  // N

constexpr int kBf16Infinity = 0x7F80;
constexpr int kBf16Largest = 0x7F7F;

// Whether going towards zero from bf16 magnitude `value` enters a binade of finer units: normal
// powers of two except the lowest, below which lie the subnormals with units of the same size.
constexpr bool is_finer_below(int value) { return (value & 0x7F) == 0 && value > 0x80; }

// The largest bf16 magnitude of a binade whose successor has coarser units (and is finite).
constexpr bool is_coarser_above(int value) {
  return (value & 0x7F) == 0x7F && value > 0x7F && value < kBf16Largest;
}

// A bf16 magnitude and a correction of it away from zero.
struct SplitMagnitude {
  int value;
  int code;
};

// One grid point has two names where bf16 numbers meet half-way. It is given the one whose value is
// the nearest bf16 number, ties to even, so that encoding it again gives the same bytes.
template <typename Code>
[[gnu::always_inline]] inline SplitMagnitude canonical(int value, int code) {
  constexpr int n = kCodes<Code>;
  // Below a power of two, (N + 1) / 2 of its half units are N - 1 of the neighbour's.
  const bool is_lower = is_finer_below(value) && code < -(n / 2);
  value -= is_lower;
  code = is_lower ? n - 1 : code;
  // The middle between two bf16 numbers belongs to the even one. Past the largest there is none.
  const bool is_largest = value == kBf16Largest && code == n;
  code -= is_largest;
  const bool is_tie = value % 2 == 1 && (code == n || code == -n);
  value += is_tie ? (code > 0 ? 1 : -1) : 0;
  code = is_tie ? -code : code;
  return {value, code};
}

// `magnitude`: the bits of a finite number without its sign.
template <typename Code, bool kStochastic>
[[gnu::always_inline]] inline SplitMagnitude split(int magnitude, unsigned noise) {
  constexpr int n = kCodes<Code>;
  // The largest float whose nearest bf16 number is finite.
  magnitude = std::min(magnitude, (kBf16Largest << 16) + 0x7FFF);
  int value = (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
  int distance = magnitude - (value << 16);
  // Between the last grid point of a binade and the first around the power of two above it, count
  // from the latter.
  const bool is_gap = is_coarser_above(value) && distance > (n - 1) * 32768 / n;
  value += is_gap;
  distance -= is_gap ? 65536 : 0;
  // `position` has 16 fraction bits, `unit` is what one unit of fp32 is on the scale of codes.
  const unsigned unit = distance < 0 && is_finer_below(value) ? n : 2 * n;
  const unsigned position = static_cast<unsigned>(distance < 0 ? -distance : distance) * unit;
  unsigned added = 32768;
  if constexpr (kStochastic) {
    // What fp32 cannot tell from a code is that code: a master read and written back stays.
    const unsigned fraction = position & 65535;
    const unsigned to_nearest = std::min(fraction, 65536 - fraction);
    added = 2 * to_nearest <= unit ? added : noise;
  }
  const int code = static_cast<int>((position + added) >> 16);
  return canonical<Code>(value, distance < 0 ? -code : code);
}

// Arithmetic and narrowing are loops of their own: together they would need four times the
// registers.
constexpr std::int64_t kSplitChunk = 64;

template <typename Code, bool kStochastic>
void encode_split_chunk(std::uint16_t* value, Code* correction, const float* in,
                        const std::uint16_t* noise, std::int64_t n) {
  std::uint32_t wide_value[kSplitChunk];
  int wide_code[kSplitChunk];
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t upper = bits >> 16;
    const int magnitude = static_cast<int>(bits & 0x7FFFFFFFu);
    const bool is_finite = magnitude < kBf16Infinity << 16;
    const std::uint32_t quiet = magnitude > kBf16Infinity << 16 ? 0x40u : 0u;
    unsigned random = 0;
    if constexpr (kStochastic) random = noise[i];
    const SplitMagnitude parts = split<Code, kStochastic>(magnitude, random);
    const std::uint32_t finite = (upper & 0x8000u) | static_cast<std::uint32_t>(parts.value);
    const int code = (upper & 0x8000u) != 0 ? -parts.code : parts.code;
    wide_value[i] = is_finite ? finite : upper | quiet;
    wide_code[i] = is_finite ? code : 0;
  }
  for (std::int64_t i = 0; i < n; ++i) value[i] = static_cast<std::uint16_t>(wide_value[i]);
  for (std::int64_t i = 0; i < n; ++i) correction[i] = static_cast<Code>(wide_code[i]);
}

template <typename Code, bool kStochastic>
void encode_split_loop(std::uint16_t* value, Code* correction, const float* in,
                       const std::uint16_t* noise, std::int64_t n) {
  std::int64_t i = 0;
  // A known length lets the compiler drop what handles the rest of a vector.
  for (; i + kSplitChunk <= n; i += kSplitChunk) {
    encode_split_chunk<Code, kStochastic>(value + i, correction + i, in + i,
                                          kStochastic ? noise + i : nullptr, kSplitChunk);
  }
  encode_split_chunk<Code, kStochastic>(value + i, correction + i, in + i,
                                        kStochastic ? noise + i : nullptr, n - i);
}

template <typename Code>
void decode_split_chunk(float* out, const std::uint16_t* value, const Code* correction,
                        std::int64_t n) {
  constexpr unsigned codes = kCodes<Code>;
  int wide_value[kSplitChunk];
  int wide_code[kSplitChunk];
  for (std::int64_t i = 0; i < n; ++i) wide_value[i] = value[i];
  for (std::int64_t i = 0; i < n; ++i) wide_code[i] = correction[i];
  for (std::int64_t i = 0; i < n; ++i) {
    const int stored = wide_value[i];
    const int magnitude = stored & 0x7FFF;
    const int code = stored > 0x7FFF ? -wide_code[i] : wide_code[i];
    const unsigned steps = static_cast<unsigned>(code < 0 ? -code : code);
    const int shift = code < 0 && is_finer_below(magnitude) ? 16 : 15;
    const int distance = static_cast<int>(((steps << shift) + codes / 2) / codes);
    const int moved = (magnitude << 16) + (code < 0 ? -distance : distance);
    // A correction of zero may point to the other side.
    const bool is_other_side = moved < 0;
    const int finite = is_other_side ? -moved : moved;
    const bool is_finite = magnitude < kBf16Infinity;
    const unsigned sign = static_cast<unsigned>(stored & 0x8000) << 16;
    const unsigned flipped = is_finite && is_other_side ? 0x80000000u : 0u;
    const auto bits = static_cast<unsigned>(is_finite ? finite : magnitude << 16);
    out[i] = std::bit_cast<float>((sign ^ flipped) | bits);
  }
}

template <typename Code>
void decode_split_loop(float* out, const std::uint16_t* value, const Code* correction,
                       std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kSplitChunk <= n; i += kSplitChunk) {
    decode_split_chunk(out + i, value + i, correction + i, kSplitChunk);
  }
  decode_split_chunk(out + i, value + i, correction + i, n - i);
}

void encode_split8(std::uint16_t* value, std::int8_t* correction, const float* in,
                   const std::uint16_t* noise, std::int64_t n) {
  noise == nullptr ? encode_split_loop<std::int8_t, false>(value, correction, in, noise, n)
                   : encode_split_loop<std::int8_t, true>(value, correction, in, noise, n);
}

void encode_split16(std::uint16_t* value, std::int16_t* correction, const float* in,
                    std::int64_t n) {
  encode_split_loop<std::int16_t, false>(value, correction, in, nullptr, n);
}

void decode_split8(float* out, const std::uint16_t* value, const std::int8_t* correction,
                   std::int64_t n) {
  decode_split_loop(out, value, correction, n);
}

void decode_split16(float* out, const std::uint16_t* value, const std::int16_t* correction,
                    std::int64_t n) {
  decode_split_loop(out, value, correction, n);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
