// Vector verbs of the 8-bit codecs: narrowing, maxima of many vectors at once.
//
// Narrowing and maxima are chains of shuffles, of which there is one unit, so they are shared by as
// many numbers as possible.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Numbers that a step of the codecs takes.
constexpr std::int64_t kFourVectors = 4 * kLanes<F32>;

// Returns both numbers in every lane, the first one below.
inline U32 read_pair(const std::uint16_t* p) {
  std::uint32_t both;
  std::memcpy(&both, p, sizeof both);
  return U32(both);
}

#ifdef __AVX512F__

// The nearest integers, ties to even, of |x| < 2^31.
inline I32 round_to_i32(const F32& x) { return _mm512_cvtps_epi32(x); }
// Codes of int8 in lanes of 32 bits, +-127 once they are narrowed to bytes and -128 is made -127:
// what is too small for an integer becomes the smallest one. Any code for NaN.
inline I32 code_of(const F32& level) { return round_to_i32(min(level, F32(127.0f))); }

// The larger magnitude of two numbers.
inline F32 larger_magnitude(const F32& a, const F32& b) { return _mm512_range_ps(a, b, 0b1011); }

// Bits of `of` where the mask has ones, of `other` elsewhere.
inline U32 blend_bits(const U32& mask, const U32& of, const U32& other) {
  return _mm512_ternarylogic_epi32(mask, of, other, 0xCA);
}

// Numbers as the upper halves of 32-bit lanes, zero below: bf16 numbers as fp32.
inline U32 read_upper_halves(const std::uint16_t* p) {
  const __m512i order = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0,  //
                                         7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, order, _mm512_castsi256_si512(halves));
}
inline void write_upper_halves(std::uint16_t* p, const U32 (&x)[2]) {
  const __m512i packed =
      _mm512_packus_epi32(_mm512_srli_epi32(x[0], 16), _mm512_srli_epi32(x[1], 16));
  const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi64(order, packed));
}

inline __m512i in_order_of_bytes(__m512i packed) {
  return _mm512_permutexvar_epi32(
      _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), packed);
}
// Saturating; |x| < 32768.
inline void write_bytes(std::int8_t* p, const I32 (&x)[4]) {
  _mm512_storeu_si512(p, in_order_of_bytes(_mm512_packs_epi16(_mm512_packs_epi32(x[0], x[1]),
                                                              _mm512_packs_epi32(x[2], x[3]))));
}
inline void write_bytes(std::uint8_t* p, const I32 (&x)[4]) {
  _mm512_storeu_si512(p, in_order_of_bytes(_mm512_packus_epi16(_mm512_packs_epi32(x[0], x[1]),
                                                               _mm512_packs_epi32(x[2], x[3]))));
}
inline I32 read_i32(const std::uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// Lane i: the largest lane of x[i], each an unsigned number. Every step joins pairs of vectors.
inline U32 largest_of_each(const U32 (&x)[16]) {
  __m512i a[8], b[4], c[2];
  for (int i = 0; i < 8; ++i) {
    a[i] = _mm512_max_epu32(_mm512_shuffle_i64x2(x[i], x[i + 8], 0x44),
                            _mm512_shuffle_i64x2(x[i], x[i + 8], 0xEE));
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_max_epu32(_mm512_shuffle_i64x2(a[i], a[i + 4], 0x88),
                            _mm512_shuffle_i64x2(a[i], a[i + 4], 0xDD));
  }
  for (int i = 0; i < 2; ++i) {
    c[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(b[i], b[i + 2]),
                            _mm512_unpackhi_epi64(b[i], b[i + 2]));
  }
  const __m512 low = _mm512_castsi512_ps(c[0]), high = _mm512_castsi512_ps(c[1]);
  const __m512i last = _mm512_max_epu32(_mm512_castps_si512(_mm512_shuffle_ps(low, high, 0x88)),
                                        _mm512_castps_si512(_mm512_shuffle_ps(low, high, 0xDD)));
  return _mm512_permutexvar_epi32(
      _mm512_set_epi32(15, 13, 14, 12, 7, 5, 6, 4, 11, 9, 10, 8, 3, 1, 2, 0), last);
}

#else

// The nearest integers, ties to even, of |x| < 2^31.
inline I32 round_to_i32(const F32& x) { return _mm256_cvtps_epi32(x); }
inline I32 code_of(const F32& level) { return round_to_i32(min(level, F32(127.0f))); }

inline F32 larger_magnitude(const F32& a, const F32& b) { return max(abs(a), abs(b)); }

// Bits of `of` where the mask has ones, of `other` elsewhere.
inline U32 blend_bits(const U32& mask, const U32& of, const U32& other) {
  return _mm256_or_si256(_mm256_and_si256(mask, of), _mm256_andnot_si256(mask, other));
}

// Numbers as the upper halves of 32-bit lanes, zero below: bf16 numbers as fp32.
inline U32 read_upper_halves(const std::uint16_t* p) { return bits_as<U32>(read_i32(p)) << 16; }
inline void write_upper_halves(std::uint16_t* p, const U32 (&x)[2]) {
  const __m256i packed =
      _mm256_packus_epi32(_mm256_srli_epi32(x[0], 16), _mm256_srli_epi32(x[1], 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0b11011000));
}

inline __m256i in_order_of_bytes(__m256i packed) {
  return _mm256_permutevar8x32_epi32(packed, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0));
}
// Saturating; |x| < 32768.
inline void write_bytes(std::int8_t* p, const I32 (&x)[4]) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      in_order_of_bytes(_mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]),
                                                           _mm256_packs_epi32(x[2], x[3]))));
}
inline void write_bytes(std::uint8_t* p, const I32 (&x)[4]) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      in_order_of_bytes(_mm256_packus_epi16(_mm256_packs_epi32(x[0], x[1]),
                                                            _mm256_packs_epi32(x[2], x[3]))));
}
inline I32 read_i32(const std::uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

// Lane i: the largest lane of x[i], each an unsigned number. Every step joins pairs of vectors.
inline U32 largest_of_each(const U32 (&x)[8]) {
  __m256i a[4], b[2];
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm256_max_epu32(_mm256_permute2x128_si256(x[i], x[i + 4], 0x20),
                            _mm256_permute2x128_si256(x[i], x[i + 4], 0x31));
  }
  for (int i = 0; i < 2; ++i) {
    b[i] = _mm256_max_epu32(_mm256_unpacklo_epi64(a[i], a[i + 2]),
                            _mm256_unpackhi_epi64(a[i], a[i + 2]));
  }
  const __m256 low = _mm256_castsi256_ps(b[0]), high = _mm256_castsi256_ps(b[1]);
  const __m256i last = _mm256_max_epu32(_mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88)),
                                        _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xDD)));
  return _mm256_permutevar8x32_epi32(last, _mm256_set_epi32(7, 5, 6, 4, 3, 1, 2, 0));
}

#endif

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
