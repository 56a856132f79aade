// The product of int8 rows with a panel of bytes; all of the integer pipeline's arithmetic.
//
// A tile of rows x vectors of columns stays in registers while a group of four bytes a column goes
// by. Where there is no instruction that adds four products of bytes in 32 bits (VNNI), what is
// known of the numbers decides how products of pairs are added:
//   trits:      64 groups of pairs fit 16 bits before they must be widened;
//   seven bits: each pair fits 16 bits, and is widened at once;
//   bytes:      bytes are widened first, the even ones and the odd ones of each group apart.
// Integers are exact in any order, so all targets give the same.
#pragma once

#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kVectorBytes = kLanes<U8>;
constexpr std::int64_t kColumnsPerVector = kVectorBytes / 4;
constexpr std::int64_t kGroupBytes = 4 * kPanelColumns;
// Pairs of products of a trit (or 0..2) and a byte are at most 510.
constexpr std::int64_t kGroupsIn16Bits = 64;

using Bytes = I32::register_type;
// With __m512i, g++ 12 copies every sum before and after vpdpbusd.
#ifdef __AVX512VNNI__
using Sum = __v16si;
#else
using Sum = Bytes;
#endif

inline Bytes load_bytes(const void* p) {
  return I32::load_unaligned(static_cast<const std::int32_t*>(p));
}
inline Bytes repeat_four(const std::int8_t* p) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, p, 4);
  return I32(bytes);
}

template <int kRows, int kVectors>
struct Tile {
  Sum sum[kRows][kVectors] = {};

  template <typename Widen>
  void add_to(std::int32_t* c, std::int64_t ldc, const Widen& widen) const {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        std::int32_t* to = c + r * ldc + v * kColumnsPerVector;
        (I32::load_unaligned(to) + I32(widen(reinterpret_cast<Bytes>(sum[r][v]))))
            .store_unaligned(to);
      }
    }
  }
};

// sum[r][v] = step(sum[r][v], group of vector v, repeated group of row r) for groups [begin, end).
template <int kRows, int kVectors, typename Step>
inline Tile<kRows, kVectors> add_groups(const std::int8_t* a, std::int64_t lda,
                                        const std::uint8_t* panel, std::int64_t begin,
                                        std::int64_t end, const Step& step) {
  Tile<kRows, kVectors> tile;
  for (std::int64_t g = begin; g < end; ++g) {
    Bytes b[kVectors];
    for (int v = 0; v < kVectors; ++v)
      b[v] = load_bytes(panel + g * kGroupBytes + v * kVectorBytes);
    for (int r = 0; r < kRows; ++r) {
      const Bytes repeated = repeat_four(a + r * lda + 4 * g);
      for (int v = 0; v < kVectors; ++v) {
        Sum& sum = tile.sum[r][v];
        sum = reinterpret_cast<Sum>(step(reinterpret_cast<Bytes>(sum), b[v], repeated));
      }
    }
  }
  return tile;
}

// Not inlined: next to other code the compiler would keep sums in memory.
template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_trits(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                      std::int64_t lda, const std::uint8_t* panel,
                                      std::int64_t groups) {
  for (std::int64_t begin = 0; begin < groups; begin += kGroupsIn16Bits) {
    const std::int64_t end = groups - begin < kGroupsIn16Bits ? groups : begin + kGroupsIn16Bits;
    add_groups<kRows, kVectors>(a, lda, panel, begin, end, [](Bytes sum, Bytes b, Bytes x) {
      return add_i16(sum, multiply_pairs_u8_i8(b, x));
    }).add_to(c, ldc, [](Bytes sum) { return multiply_pairs_i16(sum, I16(1)); });
  }
}

template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_seven_bits(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                           std::int64_t lda, const std::uint8_t* panel,
                                           std::int64_t groups) {
  const Bytes ones = I16(1);
  add_groups<kRows,
             kVectors>(a, lda, panel, 0, groups, [ones](Bytes sum, Bytes b, Bytes x) -> Bytes {
    return I32(sum) + I32(multiply_pairs_i16(multiply_pairs_u8_i8(b, x), ones));
  }).add_to(c, ldc, [](Bytes sum) { return sum; });
}

template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_bytes(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                      std::int64_t lda, const std::uint8_t* panel,
                                      std::int64_t groups) {
#ifdef __AVX512VNNI__
  add_groups<kRows, kVectors>(a, lda, panel, 0, groups, [](Bytes sum, Bytes b, Bytes x) {
    return _mm512_dpbusd_epi32(sum, b, x);
  }).add_to(c, ldc, [](Bytes sum) { return sum; });
#else
  const Bytes low = I16(0xFF);
  add_groups<kRows,
             kVectors>(a, lda, panel, 0, groups, [low](Bytes sum, Bytes b, Bytes x) -> Bytes {
    const Bytes even =
        multiply_pairs_i16(I32(b) & I32(low), shift_right_i16<8>(shift_left_i16<8>(x)));
    const Bytes odd = multiply_pairs_i16(shift_right_u16<8>(b), shift_right_i16<8>(x));
    return I32(sum) + (I32(even) + I32(odd));
  }).add_to(c, ldc, [](Bytes sum) { return sum; });
#endif
}

template <int kRows, int kVectors>
void multiply_tile(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                   const std::uint8_t* panel, std::int64_t groups, PanelRange range) {
#ifdef __AVX512VNNI__
  range = PanelRange::kBytes;
#endif
  switch (range) {
    case PanelRange::kTrits:
      return multiply_trits<kRows, kVectors>(c, ldc, a, lda, panel, groups);
    case PanelRange::kSevenBits:
      return multiply_seven_bits<kRows, kVectors>(c, ldc, a, lda, panel, groups);
    case PanelRange::kBytes:
      return multiply_bytes<kRows, kVectors>(c, ldc, a, lda, panel, groups);
  }
}

void multiply_panel(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                    std::int64_t rows, const std::uint8_t* panel, std::int64_t groups,
                    PanelRange range) {
  // A tile of 4 rows by 4 vectors fills the 32 registers of AVX-512, by 2 vectors the 16 of AVX2.
  constexpr int kVectors = sizeof(Bytes) == 64 ? 4 : 2;
  constexpr std::int64_t kColumns = kVectors * kColumnsPerVector;
  for (std::int64_t column = 0; column < kPanelColumns; column += kColumns) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      multiply_tile<4, kVectors>(c + r * ldc + column, ldc, a + r * lda, lda, panel + 4 * column,
                                 groups, range);
    }
    for (; r < rows; ++r) {
      multiply_tile<1, kVectors>(c + r * ldc + column, ldc, a + r * lda, lda, panel + 4 * column,
                                 groups, range);
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
