// Floats as int8 codes, and the sums of codes. In rows, four vectors of levels become one of bytes.
// Columns become rows: the codes of four rows are the four bytes of a word, and words are
// transposed in registers.
#pragma once

#include <algorithm>

#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/transpose-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// Writes the codes of level(i), a vector of levels from i on. Returns where the rest begins.
template <typename Level>
inline std::int64_t write_codes(std::int8_t* codes, std::int64_t n, const Level& level) {
  constexpr std::int64_t kFloats = kLanes<F32>;
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
    const I8 bytes = narrow(code_of(level(i)), code_of(level(i + kFloats)),
                            code_of(level(i + 2 * kFloats)), code_of(level(i + 3 * kFloats)));
    write(codes + i, max(bytes, I8(std::int8_t{-127})));
  }
  return i;
}

void quantize_int8(std::int8_t* codes, const float* x, const float* factors, float inverse,
                   std::int64_t n) {
  const F32 scale(inverse);
  const std::int64_t i =
      factors == nullptr
          ? write_codes(codes, n, [=](std::int64_t at) { return read<F32>(x + at) * scale; })
          : write_codes(codes, n, [=](std::int64_t at) {
              return read<F32>(x + at) * read<F32>(factors + at) * scale;
            });
  TRITGRAD_TARGET::quantize_int8(codes + i, x + i, factors == nullptr ? nullptr : factors + i,
                                 inverse, n - i);
}

void sum_int8(std::int32_t* sums, const std::int8_t* x, std::int64_t ld, std::int64_t rows,
              std::int64_t n) {
  constexpr std::int64_t kBytes = kLanes<U8>;
  constexpr std::int64_t kFew = 8;
  if (n < kFew) return TRITGRAD_TARGET::sum_int8(sums, x, ld, rows, n);
  const std::int64_t whole = n / kBytes * kBytes;
  const std::int64_t read_bytes = (n + kBytes - 1) / kBytes * kBytes;
  const U8 offset(std::uint8_t{128});  // makes codes unsigned
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    U64 eights(std::uint64_t{0});
    for (std::int64_t i = 0; i < whole; i += kBytes) {
      eights = eights + sum_eights(read<U8>(reinterpret_cast<const std::uint8_t*>(x + i)) ^ offset);
    }
    if (whole < n) {
      const I8 rest = read_first(x + whole, n - whole, I8(std::int8_t{0}));
      eights = eights + sum_eights(bits_as<U8>(rest) ^ offset);
    }
    sums[r] = static_cast<std::int32_t>(sum_lanes(eights) - 128 * read_bytes);
  }
}

}  // namespace
}  // namespace wide

namespace {

constexpr std::int64_t kColumnsAtOnce = kWords;
constexpr std::int64_t kRowsAtOnce = 4 * kWords;

// Word c holds the codes of column c in the four rows.
inline I32 quantize_four(const F32 (&levels)[4]) {
  const I8 codes = interleave_bytes(code_of(levels[0]), code_of(levels[1]), code_of(levels[2]),
                                    code_of(levels[3]));
  return bits_as<I32>(max(codes, I8(std::int8_t{-127})));
}

// Memory is prefetched so many columns on, in the same rows.
constexpr std::int64_t kColumnsAhead = 8 * kColumnsAtOnce;

// Quantises a square of words.
template <bool kPrefetch>
inline void quantize_whole(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                           const float* factors, const F32& inverse) {
  I32::register_type words[kWords];
  for (int w = 0; w < kWords; ++w) {
    F32 levels[4];
    for (int j = 0; j < 4; ++j) {
      const float* row = x + (4 * w + j) * ld_x;
      if (kPrefetch) _mm_prefetch(reinterpret_cast<const char*>(row + kColumnsAhead), _MM_HINT_T1);
      levels[j] = read<F32>(row) * F32(factors[4 * w + j]) * inverse;
    }
    words[w] = quantize_four(levels);
  }
  transpose(words);
  for (int c = 0; c < kWords; ++c) {
    write(reinterpret_cast<std::int32_t*>(codes + c * ld), I32(words[c]));
  }
}

// Quantises fewer rows or columns, filled up with zeros.
void quantize_part(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                   const float* factors, const float* inverse, std::int64_t rows,
                   std::int64_t columns) {
  float padded[kRowsAtOnce * kColumnsAtOnce] = {};
  float padded_factors[kRowsAtOnce] = {}, padded_inverse[kColumnsAtOnce] = {};
  std::int8_t padded_codes[kColumnsAtOnce * kRowsAtOnce];
  const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
  for (std::int64_t r = 0; r < rows; ++r) {
    __builtin_memcpy(padded + r * kColumnsAtOnce, x + r * ld_x, bytes);
  }
  __builtin_memcpy(padded_inverse, inverse, bytes);
  __builtin_memcpy(padded_factors, factors, static_cast<std::size_t>(rows) * sizeof(float));
  quantize_whole<false>(padded_codes, kRowsAtOnce, padded, kColumnsAtOnce, padded_factors,
                        read<F32>(padded_inverse));
  for (std::int64_t c = 0; c < columns; ++c) {
    std::int8_t* from = padded_codes + c * kRowsAtOnce;
    // Zero times a factor that is not finite is no zero.
    for (std::int64_t r = rows; r % 4 != 0; ++r) from[r] = 0;
    __builtin_memcpy(codes + c * ld, from, static_cast<std::size_t>((rows + 3) / 4 * 4));
  }
}

void quantize_columns(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                      const float* factors, const float* inverse, std::int64_t rows,
                      std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; r += kRowsAtOnce) {
    const std::int64_t rows_here = std::min(kRowsAtOnce, rows - r);
    for (std::int64_t c = 0; c < columns; c += kColumnsAtOnce) {
      const std::int64_t columns_here = std::min(kColumnsAtOnce, columns - c);
      std::int8_t* to = codes + c * ld + r;
      const float* from = x + r * ld_x + c;
      if (rows_here == kRowsAtOnce && columns_here == kColumnsAtOnce) {
        quantize_whole<true>(to, ld, from, ld_x, factors + r, read<F32>(inverse + c));
      } else {
        quantize_part(to, ld, from, ld_x, factors + r, inverse + c, rows_here, columns_here);
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
