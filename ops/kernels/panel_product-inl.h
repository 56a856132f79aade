// The product of int8 rows with a panel of bytes; all of the integer pipeline's arithmetic.
//
// A tile of rows x vectors of columns stays in registers while a group of four bytes a column goes
// by. Where there is no instruction for four products of bytes (VNNI), pairs are added in 16 bits:
//   small: one side is a trit, so 64 groups of pairs fit 16 bits before they must be widened;
//   else:  the bytes are widened first, the even ones and the odd ones of each group apart.
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

inline Bytes load_bytes(const void* p) {
  return I32::load_unaligned(static_cast<const std::int32_t*>(p));
}
inline Bytes repeat_four(const std::int8_t* p) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, p, 4);
  return I32(bytes);
}
inline void add_to(std::int32_t* c, Bytes sum) {
  (I32::load_unaligned(c) + I32(sum)).store_unaligned(c);
}

// One tile: kRows rows of a, the columns of kVectors vectors of the panel.
template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_tile(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                     std::int64_t lda, const std::uint8_t* panel,
                                     std::int64_t groups, bool small) {
#ifdef __AVX512VNNI__
  (void)small;
  Bytes sum[kRows][kVectors];
  for (auto& row : sum) {
    for (Bytes& vector : row) vector = I32(0);
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    Bytes b[kVectors];
    for (int v = 0; v < kVectors; ++v)
      b[v] = load_bytes(panel + g * kGroupBytes + v * kVectorBytes);
    for (int r = 0; r < kRows; ++r) {
      const Bytes repeated = repeat_four(a + r * lda + 4 * g);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], b[v], repeated);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) add_to(c + r * ldc + v * kColumnsPerVector, sum[r][v]);
  }
#else
  if (small) {
    for (std::int64_t begin = 0; begin < groups; begin += kGroupsIn16Bits) {
      const std::int64_t end = groups - begin < kGroupsIn16Bits ? groups : begin + kGroupsIn16Bits;
      Bytes sum[kRows][kVectors];
      for (auto& row : sum) {
        for (Bytes& vector : row) vector = I32(0);
      }
      for (std::int64_t g = begin; g < end; ++g) {
        Bytes b[kVectors];
        for (int v = 0; v < kVectors; ++v) {
          b[v] = load_bytes(panel + g * kGroupBytes + v * kVectorBytes);
        }
        for (int r = 0; r < kRows; ++r) {
          const Bytes repeated = repeat_four(a + r * lda + 4 * g);
          for (int v = 0; v < kVectors; ++v) {
            sum[r][v] = add_i16(sum[r][v], multiply_pairs_u8_i8(b[v], repeated));
          }
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          add_to(c + r * ldc + v * kColumnsPerVector, multiply_pairs_i16(sum[r][v], I16(1)));
        }
      }
    }
    return;
  }
  Bytes sum[kRows][kVectors];
  for (auto& row : sum) {
    for (Bytes& vector : row) vector = I32(0);
  }
  const Bytes low = I16(0xFF);
  for (std::int64_t g = 0; g < groups; ++g) {
    Bytes even[kVectors], odd[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const Bytes b = load_bytes(panel + g * kGroupBytes + v * kVectorBytes);
      even[v] = I32(b) & I32(low);
      odd[v] = shift_right_u16<8>(b);
    }
    for (int r = 0; r < kRows; ++r) {
      const Bytes repeated = repeat_four(a + r * lda + 4 * g);
      const Bytes a_odd = shift_right_i16<8>(repeated);
      const Bytes a_even = shift_right_i16<8>(shift_left_i16<8>(repeated));
      for (int v = 0; v < kVectors; ++v) {
        const I32 products =
            I32(multiply_pairs_i16(even[v], a_even)) + I32(multiply_pairs_i16(odd[v], a_odd));
        sum[r][v] = I32(sum[r][v]) + products;
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) add_to(c + r * ldc + v * kColumnsPerVector, sum[r][v]);
  }
#endif
}

void multiply_panel(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                    std::int64_t rows, const std::uint8_t* panel, std::int64_t groups, bool small) {
  // A tile of 4 rows by 4 vectors fills the 32 registers of AVX-512, by 2 vectors the 16 of AVX2.
  constexpr int kVectors = sizeof(Bytes) == 64 ? 4 : 2;
  constexpr std::int64_t kColumns = kVectors * kColumnsPerVector;
  for (std::int64_t column = 0; column < kPanelColumns; column += kColumns) {
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      multiply_tile<4, kVectors>(c + r * ldc + column, ldc, a + r * lda, lda, panel + 4 * column,
                                 groups, small);
    }
    for (; r < rows; ++r) {
      multiply_tile<1, kVectors>(c + r * ldc + column, ldc, a + r * lda, lda, panel + 4 * column,
                                 groups, small);
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
