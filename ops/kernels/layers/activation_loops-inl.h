// Activations and their gradients, in plain scalar form that the compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). The contracts are those
// of engine/kernels/kernel_table.h.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/kernels/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void relu(float* __restrict out, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void rectify_gradient(float* __restrict dy, const float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dy[i] *= y[i] > 0.0f ? 1.0f : 0.0f;
}

void squared_relu(float* __restrict out, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i] * x[i];
}

void squared_relu_gradient(float* __restrict dy, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dy[i] *= x[i] > 0.0f ? 2.0f * x[i] : 0.0f;
}

// e^x for x in [0, 20]; NaN stays. x = k ln 2 + r with |r| <= ln 2 / 2, the polynomial in r as in
// Cephes' expf (Moshier); k is added to the exponent by its bits.
[[gnu::always_inline]] inline float small_exp(float x) {
  constexpr float kWhole = 0x1.8p23f;  // what it is added to loses its fraction
  const float shifted = x * 1.44269504f + kWhole;
  const float k = shifted - kWhole;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;  // ln 2 in two parts
  const float p =
      ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) *
           r +
       1.6666665459e-1f) *
          r +
      5.0000001201e-1f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) +
                                           std::bit_cast<std::uint32_t>(1.0f));
  return (p * (r * r) + r + 1.0f) * power;
}

// A polynomial where |x| is small (Cephes' tanhf), 1 - 2 / (e^2|x| + 1) elsewhere; both are
// computed for all, as a loop with branches does not become vectors.
void tanh(float* __restrict out, const float* __restrict x, std::int64_t n) {
  constexpr std::uint32_t kSign = 0x80000000u;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    const float magnitude = std::bit_cast<float>(bits & ~kSign);
    const float limited = magnitude > 10.0f ? 10.0f : magnitude;  // tanh is 1 from 9.02 on
    const float large = 1.0f - 2.0f / (small_exp(2.0f * limited) + 1.0f);
    const float z = limited * limited;
    const float p = (((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z +
                     1.33314422036e-1f) *
                        z -
                    3.33332819422e-1f;
    const float small = p * z * limited + limited;
    const float y = limited < 0.625f ? small : large;
    out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(y) | (bits & kSign));
  }
}

void tanh_gradient(float* __restrict dy, const float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dy[i] *= 1.0f - y[i] * y[i];
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
