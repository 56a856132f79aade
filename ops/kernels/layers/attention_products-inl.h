// The products of attention: small ones, of tiles that lie in the caches, in floats.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention.h"
#include "ops/kernels/layers/attention_loops-inl.h"
#include "ops/kernels/products/transpose-inl.h"
#include "ops/kernels/simd-inl.h"
#include "ops/kernels/unrolled-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// A block of a product that stays in registers: rows, and vectors of columns.
constexpr int kBlockRows = kLanes<F32> == 16 ? 8 : 4;
constexpr int kBlockVectors = 2;
constexpr std::int64_t kBlockColumns = kBlockVectors * kLanes<F32>;
static_assert(kTileRows % kBlockColumns == 0 && kTileRows % kBlockRows == 0 &&
              kBlockColumns % kBlockRows == 0 && kMostHeadSize % kBlockColumns == 0);

std::int64_t padded_size(std::int64_t size) {
  return (size + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
}

// An operand whose element in row r at depth d, at[r * row_step + d * depth_step], is repeated.
struct RepeatedOperand {
  const float* at;
  std::int64_t row_step, depth_step;

  RepeatedOperand from_row(std::int64_t r) const {
    return {at + r * row_step, row_step, depth_step};
  }
};
// An operand whose rows, ld apart, are read by vectors: one for each depth.
struct VectorOperand {
  const float* at;
  std::int64_t ld;
};

// c = or += a b for kRows rows and kBlockColumns columns. Not inlined: next to other code the
// compiler would keep sums in memory.
template <int kRows>
[[gnu::noinline]] void multiply_block(float* c, std::int64_t ldc, const RepeatedOperand& a,
                                      const VectorOperand& b, std::int64_t depth, bool add) {
  constexpr int kSums = kRows * kBlockVectors;
  const auto at = [=]<int i>() {
    return c + i / kBlockVectors * ldc + i % kBlockVectors * kLanes<F32>;
  };
  F32 sum[kSums];
  unrolled<kSums>(
      [&]<int i>() { sum[i] = add ? read<F32>(at.template operator()<i>()) : F32(0.0f); });
  const float* repeated = a.at;
  const float* vectors = b.at;
  const std::int64_t row_step = a.row_step, depth_step = a.depth_step, ld = b.ld;
  for (std::int64_t d = 0; d < depth; ++d, repeated += depth_step, vectors += ld) {
    F32 vector[kBlockVectors];
    unrolled<kBlockVectors>([&]<int v>() { vector[v] = read<F32>(vectors + v * kLanes<F32>); });
    unrolled<kRows>([&]<int r>() {
      const F32 number(repeated[r * row_step]);
      unrolled<kBlockVectors>([&]<int v>() {
        constexpr int i = r * kBlockVectors + v;
        sum[i] = multiply_add(number, vector[v], sum[i]);
      });
    });
  }
  unrolled<kSums>([&]<int i>() { write(at.template operator()<i>(), sum[i]); });
}

// c = or += a b for up to kBlockRows rows and whole blocks of columns.
void multiply_rows(float* c, std::int64_t ldc, const RepeatedOperand& a, const VectorOperand& b,
                   std::int64_t rows, std::int64_t columns, std::int64_t depth, bool add) {
  for (std::int64_t i = 0; i < columns; i += kBlockColumns) {
    const VectorOperand here{b.at + i, b.ld};
    if (rows == kBlockRows) {
      multiply_block<kBlockRows>(c + i, ldc, a, here, depth, add);
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        multiply_block<1>(c + r * ldc + i, ldc, a.from_row(r), here, depth, add);
      }
    }
  }
}

// Copies rows to a tile [kTileRows x padded size], zeros where there are none.
void copy_tile(float* tile, const float* x, std::int64_t ld, std::int64_t rows, std::int64_t size) {
  const std::int64_t padded = padded_size(size);
  for (std::int64_t r = 0; r < rows; ++r) {
    copy_floats(tile + r * padded, x + r * ld, size);
    fill_floats(tile + r * padded + size, 0.0f, padded - size);
  }
  fill_floats(tile + rows * padded, 0.0f, (kTileRows - rows) * padded);
}

// out [padded x kTileRows] is a tile [kTileRows x padded], transposed, times a factor.
void transpose_tile(float* out, const float* tile, std::int64_t padded, float factor_) {
  const F32 factor(factor_);
  for (std::int64_t r = 0; r < kTileRows; r += kWords) {
    for (std::int64_t c = 0; c < padded; c += kWords) {
      transpose_rows(tile + r * padded + c, padded * static_cast<std::int64_t>(sizeof(float)),
                     [&](int i, const U8& words) {
                       write(out + (c + i) * kTileRows + r, bits_as<F32>(words) * factor);
                     });
    }
  }
}

// Sums of products in the lanes of vectors, then of the lanes.
float dot_rows(const float* a, const float* b, std::int64_t n) {
  F32 sum(0.0f);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    sum = multiply_add(read<F32>(a + i), read<F32>(b + i), sum);
  }
  if (i < n) {
    const F32 zero(0.0f);
    sum = multiply_add(read_first(a + i, n - i, zero), read_first(b + i, n - i, zero), sum);
  }
  return sum_lanes(sum);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
