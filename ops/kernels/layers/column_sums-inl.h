// Sums down columns, whose vectors stay in registers while the rows go by.
#pragma once

#include "ops/kernels/layers/batch_norm_loops-inl.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

constexpr std::int64_t kDoubles = kLanes<F64>;

// sums[i] += term(row, i), for one vector of columns from i on, row after row; four vectors at a
// time, as an addition takes four cycles. Returns where the rest begins.
template <typename Term>
inline std::int64_t add_down(double* sums, std::int64_t rows, std::int64_t n, const Term& term) {
  std::int64_t i = 0;
  for (; i + 4 * kDoubles <= n; i += 4 * kDoubles) {
    F64 a = read<F64>(sums + i), b = read<F64>(sums + i + kDoubles);
    F64 c = read<F64>(sums + i + 2 * kDoubles), d = read<F64>(sums + i + 3 * kDoubles);
    for (std::int64_t r = 0; r < rows; ++r) {
      a = a + term(r, i);
      b = b + term(r, i + kDoubles);
      c = c + term(r, i + 2 * kDoubles);
      d = d + term(r, i + 3 * kDoubles);
    }
    write(sums + i, a);
    write(sums + i + kDoubles, b);
    write(sums + i + 2 * kDoubles, c);
    write(sums + i + 3 * kDoubles, d);
  }
  return i;
}

void add_to_sums(double* sums, const float* x, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  const std::int64_t i = add_down(
      sums, rows, n, [=](std::int64_t r, std::int64_t at) { return read_f64(x + r * ld + at); });
  TRITGRAD_TARGET::add_to_sums(sums + i, x + i, ld, rows, n - i);
}

void add_squares_around(double* sums, const float* x, std::int64_t ld, const double* means,
                        std::int64_t rows, std::int64_t n) {
  const std::int64_t i = add_down(sums, rows, n, [=](std::int64_t r, std::int64_t at) {
    const F64 centered = read_f64(x + r * ld + at) - read<F64>(means + at);
    return centered * centered;
  });
  TRITGRAD_TARGET::add_squares_around(sums + i, x + i, ld, means + i, rows, n - i);
}

void add_products(double* sums, const float* a, const float* b, std::int64_t ld, std::int64_t rows,
                  std::int64_t n) {
  const std::int64_t i = add_down(sums, rows, n, [=](std::int64_t r, std::int64_t at) {
    return read_f64(a + r * ld + at) * read_f64(b + r * ld + at);
  });
  TRITGRAD_TARGET::add_products(sums + i, a + i, b + i, ld, rows, n - i);
}

// One vector of floats, two of doubles for each of the sums.
template <bool kRectify>
inline void add_batch_norm_vector(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                                  std::int64_t ld, const NormColumns& columns, std::int64_t rows) {
  const F32 mean = read<F32>(columns.mean), inverse_std = read<F32>(columns.inverse_std);
  const F32 gain = read<F32>(columns.gain), bias = read<F32>(columns.bias), zero(0.0f);
  F64 low = read<F64>(sum_dy), high = read<F64>(sum_dy + kDoubles);
  F64 low_z = read<F64>(sum_dy_z), high_z = read<F64>(sum_dy_z + kDoubles);
  for (std::int64_t r = 0; r < rows; ++r, dy += ld, x += ld) {
    const F32 z = (read<F32>(x) - mean) * inverse_std;
    F32 gradient = read<F32>(dy);
    if (kRectify) {
      gradient = gradient * one_if<float>(z * gain + bias > zero);
      write(dy, gradient);
    }
    const F64 g_low = low_half(gradient), g_high = high_half(gradient);
    low = low + g_low;
    high = high + g_high;
    low_z = low_z + g_low * low_half(z);
    high_z = high_z + g_high * high_half(z);
  }
  write(sum_dy, low);
  write(sum_dy + kDoubles, high);
  write(sum_dy_z, low_z);
  write(sum_dy_z + kDoubles, high_z);
}

void add_batch_norm_sums(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                         std::int64_t ld, const NormColumns& columns, std::int64_t rows,
                         std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    const auto add = columns.rectify ? add_batch_norm_vector<true> : add_batch_norm_vector<false>;
    add(sum_dy + i, sum_dy_z + i, dy + i, x + i, ld, columns.from(i), rows);
  }
  TRITGRAD_TARGET::add_batch_norm_sums(sum_dy + i, sum_dy_z + i, dy + i, x + i, ld, columns.from(i),
                                       rows, n - i);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
