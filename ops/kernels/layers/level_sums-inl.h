// Sums of levels, of their squares, and their ranges down columns, which stay in registers while
// the rows go by.
#pragma once

#include "engine/kernels/layers.h"
#include "ops/kernels/layers/level_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET::wide {
namespace {

// Takes one vector of columns. Sums of so many rows fit 32 bits.
inline void add_level_vector(std::int64_t* sums, std::int64_t* squares, const std::int16_t* levels,
                             std::int64_t ld, std::int64_t rows) {
  constexpr std::int64_t kColumns = kLanes<I32>;
  I32 sum(0);
  I64 even(std::int64_t{0}), odd(std::int64_t{0});
  for (std::int64_t r = 0; r < rows; ++r, levels += ld) {
    const I32 level = read_i32(levels);
    sum = sum + level;
    even = even + square_even_lanes(level);
    odd = odd + square_even_lanes(odd_to_even_lanes(level));
  }
  std::int32_t column_sums[kColumns];
  std::int64_t even_squares[kColumns / 2], odd_squares[kColumns / 2];
  write(column_sums, sum);
  write(even_squares, even);
  write(odd_squares, odd);
  for (std::int64_t i = 0; i < kColumns; ++i) {
    sums[i] += column_sums[i];
    squares[i] += i % 2 == 0 ? even_squares[i / 2] : odd_squares[i / 2];
  }
}

void add_level_sums(std::int64_t* sums, std::int64_t* squares, const std::int16_t* levels,
                    std::int64_t ld, std::int64_t rows, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<I32> <= n; i += kLanes<I32>) {
    add_level_vector(sums + i, squares + i, levels + i, ld, rows);
  }
  TRITGRAD_TARGET::add_level_sums(sums + i, squares + i, levels + i, ld, rows, n - i);
}

void widen_level_range(std::int16_t* least, std::int16_t* most, const std::int16_t* levels,
                       std::int64_t ld, std::int64_t rows, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<I16> <= n; i += kLanes<I16>) {
    I16 low = read<I16>(least + i), high = read<I16>(most + i);
    for (std::int64_t r = 0; r < rows; ++r) {
      const I16 level = read<I16>(levels + r * ld + i);
      low = min(low, level);
      high = max(high, level);
    }
    write(least + i, low);
    write(most + i, high);
  }
  TRITGRAD_TARGET::widen_level_range(least + i, most + i, levels + i, ld, rows, n - i);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET::wide
