// The product of int8 rows with a panel of bytes; all of the integer pipeline's arithmetic.
//
// A tile of rows x vectors of columns stays in registers while a group of four bytes a column goes
// by. Where there is no instruction that adds four products of bytes in 32 bits (VNNI), what is
// known of the numbers decides how products of pairs are added:
//   trits:      64 groups of pairs fit 16 bits before they must be widened;
//   seven bits: each pair fits 16 bits, and is widened at once;
//   bytes:      less 128 they are signed, and go as magnitudes whose signs the other factor takes.
// Integers are exact in any order, so all targets give the same.
#pragma once

#include "ops/kernels/products/byte_sums-inl.h"
#include "ops/kernels/products/gradual_prefetch-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kVectorBytes = kLanes<U8>;
constexpr std::int64_t kColumnsPerVector = kVectorBytes / 4;
constexpr std::int64_t kGroupBytes = 4 * kPanelColumns;
// Pairs of products of a trit (or 0..2) and a byte are at most 510.
constexpr std::int64_t kGroupsIn16Bits = 64;

inline Bytes load_bytes(const void* p) {
  return I32::load_unaligned(static_cast<const std::int32_t*>(p));
}
inline Bytes repeat_four(const std::int8_t* p) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, p, 4);
  return I32(bytes);
}

// c = or += widen(sum) for sum = step(sum, group of a vector, repeated group of a row), over groups
// [begin, end).
template <typename Sum, int kRows, int kVectors, typename Step, typename Widen>
[[gnu::always_inline]] inline void add_groups(std::int32_t* c, std::int64_t ldc,
                                              const std::int8_t* a, std::int64_t lda,
                                              const std::uint8_t* panel, std::int64_t begin,
                                              std::int64_t end, bool add, const Step& step,
                                              const Widen& widen) {
  constexpr int kTile = kRows * kVectors;
  Sum sum[kTile];
  unrolled<kTile>([&]<int i>() { sum[i] = Sum{}; });
#pragma GCC unroll 4
  for (std::int64_t g = begin; g < end; ++g) {
    Bytes b[kVectors];
    unrolled<kVectors>(
        [&]<int v>() { b[v] = load_bytes(panel + g * kGroupBytes + v * kVectorBytes); });
    unrolled<kRows>([&]<int r>() {
      const Bytes repeated = repeat_four(a + r * lda + 4 * g);
      unrolled<kVectors>(
          [&]<int v>() { sum[r * kVectors + v] = step(sum[r * kVectors + v], b[v], repeated); });
    });
  }
  unrolled<kTile>([&]<int i>() {
    std::int32_t* to = c + i / kVectors * ldc + i % kVectors * kColumnsPerVector;
    I32 result = widen(reinterpret_cast<Bytes>(sum[i]));
    if (add) result = result + I32::load_unaligned(to);
    result.store_unaligned(to);
  });
}

#ifdef __AVX512VNNI__

// sum += the products of a piece.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_groups(Sums32 (&sum)[kRows * kVectors],
                                                   const std::int8_t* a, std::int64_t lda,
                                                   const std::uint8_t* panel, std::int64_t groups) {
#pragma GCC unroll 4
  for (std::int64_t g = 0; g < groups; ++g) {
    Bytes b[kVectors];
    unrolled<kVectors>(
        [&]<int v>() { b[v] = load_bytes(panel + g * kGroupBytes + v * kVectorBytes); });
    unrolled<kRows>([&]<int r>() {
      const Bytes repeated = repeat_four(a + r * lda + 4 * g);
      unrolled<kVectors>([&]<int v>() {
        Sums32& to = sum[r * kVectors + v];
        to = reinterpret_cast<Sums32>(
            _mm512_dpbusd_epi32(reinterpret_cast<Bytes>(to), b[v], repeated));
      });
    });
  }
}

template <int kRows, int kVectors>
[[gnu::always_inline]] inline void store_tile(std::int32_t* c, std::int64_t ldc,
                                              Sums32 (&sum)[kRows * kVectors], bool add) {
  unrolled<kRows * kVectors>([&]<int i>() {
    std::int32_t* to = c + i / kVectors * ldc + i % kVectors * kColumnsPerVector;
    I32 result = reinterpret_cast<Bytes>(sum[i]);
    if (add) result = result + I32::load_unaligned(to);
    result.store_unaligned(to);
  });
}

#endif

// The products of `rows` rows, a multiple of kRows. Not inlined: next to other code the compiler
// would keep sums in memory. One call for all rows: what a call begins and ends with takes 2 % of
// the time of a tile.
template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_trits(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                      std::int64_t lda, std::int64_t rows,
                                      const std::uint8_t* panel, std::int64_t groups, bool add,
                                      GradualPrefetch& ahead) {
  for (std::int64_t r = 0; r < rows; r += kRows) {
    ahead.prefetch_some();
    for (std::int64_t begin = 0; begin == 0 || begin < groups; begin += kGroupsIn16Bits) {
      const std::int64_t end = groups - begin < kGroupsIn16Bits ? groups : begin + kGroupsIn16Bits;
      add_groups<Sums16, kRows, kVectors>(
          c + r * ldc, ldc, a + r * lda, lda, panel, begin, end, add || begin > 0,
          [](Sums16 sum, Bytes b, Bytes x) {
            return sum + reinterpret_cast<Sums16>(multiply_pairs_u8_i8(b, x));
          },
          [](Bytes sum) { return multiply_pairs_i16(sum, I16(1)); });
    }
  }
}

template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_seven_bits(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                           std::int64_t lda, std::int64_t rows,
                                           const std::uint8_t* panel, std::int64_t groups, bool add,
                                           GradualPrefetch& ahead) {
  const Bytes ones = I16(1);
  for (std::int64_t r = 0; r < rows; r += kRows) {
    ahead.prefetch_some();
    add_groups<Sums32, kRows, kVectors>(
        c + r * ldc, ldc, a + r * lda, lda, panel, 0, groups, add,
        [ones](Sums32 sum, Bytes b, Bytes x) {
          const Bytes pairs = multiply_pairs_u8_i8(b, x);
          return sum + reinterpret_cast<Sums32>(multiply_pairs_i16(pairs, ones));
        },
        [](Bytes sum) { return sum; });
  }
}

#ifdef __AVX512VNNI__

// The pieces of the depth one after the other, while the sums stay where they are.
template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_bytes(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                      std::int64_t lda, std::int64_t rows,
                                      const std::uint8_t* panel, const PanelDepth& depth, bool add,
                                      GradualPrefetch& ahead) {
  constexpr int kTile = kRows * kVectors;
  for (std::int64_t r = 0; r < rows; r += kRows) {
    ahead.prefetch_some();
    Sums32 sum[kTile];
    unrolled<kTile>([&]<int i>() { sum[i] = Sums32{}; });
    const std::int8_t* numbers = a + r * lda;
    const std::uint8_t* bytes = panel;
    for (std::int64_t piece = depth.pieces; piece > 0; --piece) {
      multiply_groups<kRows, kVectors>(sum, numbers, lda, bytes, depth.groups);
      numbers += depth.a_stride;
      bytes += depth.panel_stride;
    }
    store_tile<kRows, kVectors>(c + r * ldc, ldc, sum, add);
  }
}

#else

// Multiplies bytes less 128: two products are at most 2 * 128 * 127.
template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_bytes(std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                      std::int64_t lda, std::int64_t rows,
                                      const std::uint8_t* panel, std::int64_t groups, bool add,
                                      GradualPrefetch& ahead) {
  const Bytes ones = I16(1), middle = U8(std::uint8_t{128});
  for (std::int64_t r = 0; r < rows; r += kRows) {
    ahead.prefetch_some();
    add_groups<Sums32, kRows, kVectors>(
        c + r * ldc, ldc, a + r * lda, lda, panel, 0, groups, add,
        [ones, middle](Sums32 sum, Bytes b, Bytes x) {
          const Bytes number = U8(b) ^ U8(middle);
          const Bytes pairs = multiply_pairs_u8_i8(magnitudes(number), with_signs(x, number));
          return sum + reinterpret_cast<Sums32>(multiply_pairs_i16(pairs, ones));
        },
        [](Bytes sum) { return sum; });
  }
}

// Starts with the share of those 128 in the products: c[r] = or += 128 times the sum of row r of a.
void start_bytes(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                 std::int64_t rows, std::int64_t columns, const PanelDepth& depth, bool add) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int32_t sum = 0;
    for (std::int64_t piece = 0; piece < depth.pieces; ++piece) {
      const std::int8_t* numbers = a + piece * depth.a_stride + r * lda;
      for (std::int64_t i = 0; i < 4 * depth.groups; ++i) sum += numbers[i];
    }
    std::int32_t* to = c + r * ldc;
    for (std::int64_t i = 0; i < columns; ++i) to[i] = (add ? to[i] : 0) + 128 * sum;
  }
}

#endif

#ifdef __AVX512VNNI__

template <int kRows, int kVectors>
void multiply_rows(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                   std::int64_t rows, const std::uint8_t* panel, const PanelDepth& depth,
                   PanelRange, bool add, GradualPrefetch& ahead) {
  multiply_bytes<kRows, kVectors>(c, ldc, a, lda, rows, panel, depth, add, ahead);
}

#else

// One piece of the depth after the other.
template <int kRows, int kVectors>
void multiply_rows(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                   std::int64_t rows, const std::uint8_t* panel, const PanelDepth& depth,
                   PanelRange range, bool add, GradualPrefetch& ahead) {
  for (std::int64_t piece = 0; piece < depth.pieces; ++piece) {
    const auto multiply = [&](auto* product) {
      product(c, ldc, a + piece * depth.a_stride, lda, rows, panel + piece * depth.panel_stride,
              depth.groups, add || piece > 0, ahead);
    };
    switch (range) {
      case PanelRange::kTrits:
        multiply(multiply_trits<kRows, kVectors>);
        break;
      case PanelRange::kSevenBits:
        multiply(multiply_seven_bits<kRows, kVectors>);
        break;
      case PanelRange::kBytes:
        multiply(multiply_bytes<kRows, kVectors>);
        break;
    }
  }
}

#endif

// multiply_panel() of the columns of kVectors vectors: kRows rows at a time, then four where kRows
// is six, then one.
template <int kRows, int kVectors>
void multiply_vectors(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                      std::int64_t rows, const std::uint8_t* panel, const PanelDepth& depth,
                      PanelRange range, bool add, GradualPrefetch& ahead) {
  std::int64_t done = 0;
  const auto multiply = [&]<int kTogether>(std::int64_t count) {
    if (count == 0) return;
    multiply_rows<kTogether, kVectors>(c + done * ldc, ldc, a + done * lda, lda, count, panel,
                                       depth, range, add, ahead);
    done += count;
  };
  std::int64_t fours = 0;
  if constexpr (kRows == 6) {
    // Sixes and fours make every even number but 2.
    while (fours + 4 <= rows && (rows - fours) % 6 > 1) fours += 4;
  }
  multiply.template operator()<kRows>((rows - fours) / kRows * kRows);
  if constexpr (kRows == 6) multiply.template operator()<4>(fours);
  multiply.template operator()<1>(rows - done);
}

void multiply_panel(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                    std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                    const PanelDepth& depth, PanelRange range, bool add,
                    const PrefetchList& memory) {
#ifndef __AVX512VNNI__
  if (range == PanelRange::kBytes) {
    start_bytes(c, ldc, a, lda, rows, columns, depth, add);
    add = true;
  }
#endif
  // As many rows as registers have room for, of four vectors with AVX-512 and of two with AVX2: the
  // more, the fewer loads for each product.
#ifdef __AVX512VNNI__
  constexpr int kRows = 6;
#else
  constexpr int kRows = 4;
#endif
  constexpr bool kManyRegisters = sizeof(Bytes) == 64;
  // No tile has more than eight rows, or more columns.
  constexpr std::int64_t kWidest = (kManyRegisters ? 4 : 2) * kColumnsPerVector;
  GradualPrefetch ahead(memory, rows / 8 * ((columns + kWidest - 1) / kWidest));
  for (std::int64_t column = 0; column < columns;) {
    const auto multiply = [&]<int kTogether, int kVectors>() {
      multiply_vectors<kTogether, kVectors>(c + column, ldc, a, lda, rows, panel + 4 * column,
                                            depth, range, add, ahead);
      column += kVectors * kColumnsPerVector;
    };
    const std::int64_t left = columns - column;
    // NOLINTNEXTLINE(bugprone-branch-clone): with few registers the second is the first
    if (kManyRegisters && left > 2 * kColumnsPerVector) {
      multiply.template operator()<kRows, kManyRegisters ? 4 : 2>();
    } else if (left > kColumnsPerVector) {
      multiply.template operator()<kManyRegisters ? 8 : 4, 2>();
    } else {
      multiply.template operator()<8, 1>();
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
