// The loops of layers that are no products, in plain scalar form that the compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). The contracts are those
// of engine/kernel_table.h.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void relu(float* __restrict out, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] < 0.0f ? 0.0f : x[i];
}

void rectify_gradient(float* __restrict dy, const float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) dy[i] *= y[i] > 0.0f ? 1.0f : 0.0f;
}

void add_to_sums(double* __restrict sums, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

void add_squares_around(double* __restrict sums, const float* __restrict x,
                        const double* __restrict means, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double centered = static_cast<double>(x[i]) - means[i];
    sums[i] += centered * centered;
  }
}

void add_products(double* __restrict sums, const float* __restrict a, const float* __restrict b,
                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    sums[i] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
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

void max_pool(float* __restrict y, std::uint8_t* __restrict winners, const float* __restrict above,
              const float* __restrict below, std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    for (std::int64_t i = 0; i < channels; ++i) {
      y[i] = larger(larger(larger(above[i], above[channels + i]), below[i]), below[channels + i]);
    }
    for (std::int64_t i = 0; winners != nullptr && i < channels; ++i) {
      int winner = y[i] == below[channels + i] ? 3 : 4;
      winner = y[i] == below[i] ? 2 : winner;
      winner = y[i] == above[channels + i] ? 1 : winner;
      winners[i] = static_cast<std::uint8_t>(y[i] == above[i] ? 0 : winner);
    }
    y += channels;
    if (winners != nullptr) winners += channels;
    above += 2 * channels;
    below += 2 * channels;
  }
}

void max_pool_gradient(float* __restrict dabove, float* __restrict dbelow,
                       const std::uint8_t* __restrict winners, const float* __restrict dy,
                       std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    for (std::int64_t i = 0; i < channels; ++i) {
      const auto share = [dy = dy[i], winner = winners[i]](std::uint8_t which) {
        return winner == which ? dy : 0.0f;
      };
      dabove[i] += share(0);
      dabove[channels + i] += share(1);
      dbelow[i] += share(2);
      dbelow[channels + i] += share(3);
    }
    winners += channels;
    dy += channels;
    dabove += 2 * channels;
    dbelow += 2 * channels;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
