// Squares of 32-bit words transposed, and rows of bytes interleaved, in registers.
#pragma once

#include <cstdint>

#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr int kWords = static_cast<int>(kLanes<I32>);

// Word j of row i becomes word i of row j.
#ifdef __AVX512F__
inline void transpose(__m512i (&rows)[16]) {
  __m512i pairs[16], fours[16], halves[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  // fours[4 a + b]: words b, b + 4, b + 8, b + 12 of rows 4 a .. 4 a + 3.
  for (int a = 0; a < 16; a += 4) {
    fours[a] = _mm512_unpacklo_epi64(pairs[a], pairs[a + 2]);
    fours[a + 1] = _mm512_unpackhi_epi64(pairs[a], pairs[a + 2]);
    fours[a + 2] = _mm512_unpacklo_epi64(pairs[a + 1], pairs[a + 3]);
    fours[a + 3] = _mm512_unpackhi_epi64(pairs[a + 1], pairs[a + 3]);
  }
  for (int b = 0; b < 4; ++b) {
    halves[b] = _mm512_shuffle_i32x4(fours[b], fours[4 + b], 0b10001000);
    halves[4 + b] = _mm512_shuffle_i32x4(fours[b], fours[4 + b], 0b11011101);
    halves[8 + b] = _mm512_shuffle_i32x4(fours[8 + b], fours[12 + b], 0b10001000);
    halves[12 + b] = _mm512_shuffle_i32x4(fours[8 + b], fours[12 + b], 0b11011101);
  }
  for (int b = 0; b < 4; ++b) {
    rows[b] = _mm512_shuffle_i32x4(halves[b], halves[8 + b], 0b10001000);
    rows[4 + b] = _mm512_shuffle_i32x4(halves[4 + b], halves[12 + b], 0b10001000);
    rows[8 + b] = _mm512_shuffle_i32x4(halves[b], halves[8 + b], 0b11011101);
    rows[12 + b] = _mm512_shuffle_i32x4(halves[4 + b], halves[12 + b], 0b11011101);
  }
}
#else
inline void transpose(__m256i (&rows)[8]) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  // fours[4 a + b]: words b and b + 4 of rows 4 a .. 4 a + 3.
  for (int a = 0; a < 8; a += 4) {
    fours[a] = _mm256_unpacklo_epi64(pairs[a], pairs[a + 2]);
    fours[a + 1] = _mm256_unpackhi_epi64(pairs[a], pairs[a + 2]);
    fours[a + 2] = _mm256_unpacklo_epi64(pairs[a + 1], pairs[a + 3]);
    fours[a + 3] = _mm256_unpackhi_epi64(pairs[a + 1], pairs[a + 3]);
  }
  for (int b = 0; b < 4; ++b) {
    rows[b] = _mm256_permute2x128_si256(fours[b], fours[4 + b], 0x20);
    rows[4 + b] = _mm256_permute2x128_si256(fours[b], fours[4 + b], 0x31);
  }
}
#endif

// Calls body(i, words) for column i of a square of words whose rows are ld bytes apart.
template <typename Body>
[[gnu::always_inline]] inline void transpose_rows(const void* rows, std::int64_t ld,
                                                  const Body& body) {
  U8::register_type words[kWords];
  for (int i = 0; i < kWords; ++i) {
    words[i] = read<U8>(static_cast<const std::uint8_t*>(rows) + i * ld);
  }
  transpose(words);
  for (int i = 0; i < kWords; ++i) body(i, U8(words[i]));
}

// Bytes c of the four rows become word c, of as many columns as four registers have words.
#ifdef __AVX512F__
inline void interleave(U8 (&rows)[4]) {
  const __m512i low01 = _mm512_unpacklo_epi8(rows[0], rows[1]);
  const __m512i high01 = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(rows[2], rows[3]);
  const __m512i high23 = _mm512_unpackhi_epi8(rows[2], rows[3]);
  // Columns 0 to 3, 4 to 7, 8 to 11 and 12 to 15 of each quarter of 16.
  const __m512i a = _mm512_unpacklo_epi16(low01, low23), b = _mm512_unpackhi_epi16(low01, low23);
  const __m512i c = _mm512_unpacklo_epi16(high01, high23);
  const __m512i d = _mm512_unpackhi_epi16(high01, high23);
  const __m512i ab02 = _mm512_shuffle_i32x4(a, b, 0b10001000);
  const __m512i ab13 = _mm512_shuffle_i32x4(a, b, 0b11011101);
  const __m512i cd02 = _mm512_shuffle_i32x4(c, d, 0b10001000);
  const __m512i cd13 = _mm512_shuffle_i32x4(c, d, 0b11011101);
  rows[0] = U8(_mm512_shuffle_i32x4(ab02, cd02, 0b10001000));
  rows[1] = U8(_mm512_shuffle_i32x4(ab13, cd13, 0b10001000));
  rows[2] = U8(_mm512_shuffle_i32x4(ab02, cd02, 0b11011101));
  rows[3] = U8(_mm512_shuffle_i32x4(ab13, cd13, 0b11011101));
}
#else
inline void interleave(U8 (&rows)[4]) {
  const __m256i low01 = _mm256_unpacklo_epi8(rows[0], rows[1]);
  const __m256i high01 = _mm256_unpackhi_epi8(rows[0], rows[1]);
  const __m256i low23 = _mm256_unpacklo_epi8(rows[2], rows[3]);
  const __m256i high23 = _mm256_unpackhi_epi8(rows[2], rows[3]);
  const __m256i a = _mm256_unpacklo_epi16(low01, low23), b = _mm256_unpackhi_epi16(low01, low23);
  const __m256i c = _mm256_unpacklo_epi16(high01, high23);
  const __m256i d = _mm256_unpackhi_epi16(high01, high23);
  rows[0] = U8(_mm256_permute2x128_si256(a, b, 0x20));
  rows[1] = U8(_mm256_permute2x128_si256(c, d, 0x20));
  rows[2] = U8(_mm256_permute2x128_si256(a, b, 0x31));
  rows[3] = U8(_mm256_permute2x128_si256(c, d, 0x31));
}
#endif

// Calls body(v, words) for words [v, v + 1) kLanes<I32> of four rows of kLanes<U8> bytes, ld apart.
template <typename Body>
[[gnu::always_inline]] inline void interleave_rows(const void* rows, std::int64_t ld,
                                                   const Body& body) {
  U8 four[4];
  for (int j = 0; j < 4; ++j) four[j] = read<U8>(static_cast<const std::uint8_t*>(rows) + j * ld);
  interleave(four);
  for (int v = 0; v < 4; ++v) body(v, four[v]);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
