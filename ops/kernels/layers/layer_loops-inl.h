// The loops of layers without weights that are no norms (activations, features, pooling), and sums
// down columns, in plain scalar form that the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/layers.h and reductions.h.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "engine/kernels/layers.h"
#include "ops/kernels/layers/exp-inl.h"

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

void add_to_sums(double* __restrict sums, const float* __restrict x, std::int64_t ld,
                 std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
  }
}

void add_squares_around(double* __restrict sums, const float* __restrict x, std::int64_t ld,
                        const double* __restrict means, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double centered = static_cast<double>(x[i]) - means[i];
      sums[i] += centered * centered;
    }
  }
}

void add_products(double* __restrict sums, const float* __restrict a, const float* __restrict b,
                  std::int64_t ld, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, a += ld, b += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      sums[i] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
  }
}

void bytes_to_float(float* __restrict out, const std::uint8_t* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i]);
}

void square_roots(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = std::sqrt(x[i]);
}

inline float standardized_feature(float x, double mean, double inverse_std) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double wide = (static_cast<double>(x) - mean) * inverse_std;
  const double below = wide > kMax ? kMax : wide;  // NaN stays
  return static_cast<float>(below < -kMax ? -kMax : below);
}

void standardize_features(float* __restrict x, const float* __restrict mean,
                          const float* __restrict inverse_std, bool one_for_all, std::int64_t n) {
  if (one_for_all) {
    const double m = static_cast<double>(mean[0]), s = static_cast<double>(inverse_std[0]);
    for (std::int64_t i = 0; i < n; ++i) x[i] = standardized_feature(x[i], m, s);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = standardized_feature(x[i], static_cast<double>(mean[i]),
                                static_cast<double>(inverse_std[i]));
  }
}

float larger(float a, float b) { return b > a || b != b ? b : a; }

// Marks the winner by one bit for each of four arrays: the first that equals y.
void mark_winners(std::int32_t* __restrict winners, const float* __restrict y,
                  const float* __restrict x0, const float* __restrict x1,
                  const float* __restrict x2, const float* __restrict x3, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t winner = y[i] == x3[i] ? 8 : 0;
    winner = y[i] == x2[i] ? 4 : winner;
    winner = y[i] == x1[i] ? 2 : winner;
    winners[i] = y[i] == x0[i] ? 1 : winner;
  }
}

void max_pool(float* __restrict y, std::int32_t* __restrict winners, const float* __restrict above,
              const float* __restrict below, std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    for (std::int64_t i = 0; i < channels; ++i) {
      y[i] = larger(larger(larger(above[i], above[channels + i]), below[i]), below[channels + i]);
    }
    if (winners != nullptr) {
      mark_winners(winners, y, above, above + channels, below, below + channels, channels);
      winners += channels;
    }
    y += channels;
    above += 2 * channels;
    below += 2 * channels;
  }
}

// Bits are asked for, not numbers: of `winner == 1`, `winner == 2` and so on g++ 12 makes a switch,
// which it does not vectorise.
void add_to_winners(float* __restrict dx0, float* __restrict dx1, float* __restrict dx2,
                    float* __restrict dx3, const std::int32_t* __restrict winners,
                    const float* __restrict dy, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    dx0[i] += (winners[i] & 1) != 0 ? dy[i] : 0.0f;
    dx1[i] += (winners[i] & 2) != 0 ? dy[i] : 0.0f;
    dx2[i] += (winners[i] & 4) != 0 ? dy[i] : 0.0f;
    dx3[i] += (winners[i] & 8) != 0 ? dy[i] : 0.0f;
  }
}

void max_pool_gradient(float* __restrict dabove, float* __restrict dbelow,
                       const std::int32_t* __restrict winners, const float* __restrict dy,
                       std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    add_to_winners(dabove, dabove + channels, dbelow, dbelow + channels, winners, dy, channels);
    winners += channels;
    dy += channels;
    dabove += 2 * channels;
    dbelow += 2 * channels;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
