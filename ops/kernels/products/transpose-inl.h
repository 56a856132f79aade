// A square of 32-bit words, as many rows as a register has words, transposed in registers.
#pragma once

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

// body(i, words) for column i of a square of words whose rows are ld bytes apart.
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

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
