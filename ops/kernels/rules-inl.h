// Float arithmetic of update rules. The order of operations is that of reference.cpp and
// multiply-add is never fused, so the bits are the same everywhere.
#pragma once

#include "ops/kernels/reference.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void descend(float* w, const float* direction, float lr, std::int64_t n) {
  const F32 rate(lr);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    write(w + i, read<F32>(w + i) - rate * read<F32>(direction + i));
  }
  reference::descend(w + i, direction + i, lr, n - i);
}

void quantize_levels(std::int16_t* levels, const float* direction, float scale, int limit,
                     const std::uint16_t* noise, std::int64_t n) {
  const F32 negative_scale(-scale), high(static_cast<float>(limit));
  const I32 low(-limit);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    F32 exact = negative_scale * read<F32>(direction + i);
    // Both of the noise's operations are exact, so they may be fused.
    if (noise != nullptr) {
      exact += xsimd::fma(xsimd::to_float(read_i32(noise + i)), F32(0x1p-16f), F32(0x1p-17f));
    }
    // What is too small for an integer becomes the smallest one; NaN becomes 0.
    const F32 limited = xsimd::min(high, exact);
    const I32 level = noise == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
    write_narrow(levels + i, xsimd::max(level, low));
  }
  reference::quantize_levels(levels + i, direction + i, scale, limit,
                             noise == nullptr ? nullptr : noise + i, n - i);
}

void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
           const AdamwConstants& constants, std::int64_t n) {
  const F32 beta1(constants.beta1), one_minus_beta1(constants.one_minus_beta1);
  const F32 beta2(constants.beta2), one_minus_beta2(constants.one_minus_beta2);
  const F32 inverse_bias1(constants.inverse_bias1), inverse_bias2(constants.inverse_bias2);
  const F32 eps(constants.eps), weight_decay(constants.weight_decay);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    read_ahead(grad + i, kLanes<F32>);
    // Where all is fp32, these are the tensors themselves.
    read_soon(grad + i);
    read_soon(m + i);
    read_soon(v + i);
    read_soon(master + i);
    const F32 g = read<F32>(grad + i);
    const F32 mean = beta1 * read<F32>(m + i) + one_minus_beta1 * g;
    const F32 square = beta2 * read<F32>(v + i) + (one_minus_beta2 * g) * g;
    const F32 root = xsimd::sqrt(square * inverse_bias2);
    const F32 decay = weight_decay * read<F32>(master + i);
    write(m + i, mean);
    write(v + i, square);
    write(direction + i, mean * inverse_bias1 / (root + eps) + decay);
  }
  reference::adamw(direction + i, m + i, v + i, grad + i, master + i, constants, n - i);
}

// The sum of term(x[i]); element i goes to lane i % 16.
template <typename Term>
double sum_in_lanes(const float* x, std::int64_t n, const Term& term) {
  constexpr std::int64_t width = kLanes<F64>;
  F64 sums[16 / width];
  for (F64& sum : sums) sum = F64(0.0);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::int64_t part = 0; part < 16 / width; ++part) {
      sums[part] += term(read_f64(x + i + part * width));
    }
  }
  double lanes[16];
  for (std::int64_t part = 0; part < 16 / width; ++part) write(lanes + part * width, sums[part]);
  for (std::int64_t lane = 0; i + lane < n; ++lane) lanes[lane] += term(double{x[i + lane]});
  double total = 0.0;
  for (double lane : lanes) total += lane;
  return total;
}

double sum(const float* x, std::int64_t n) {
  return sum_in_lanes(x, n, [](const auto& value) { return value; });
}

double sum_of_squares(const float* x, std::int64_t n) {
  return sum_in_lanes(x, n, [](const auto& value) { return value * value; });
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
