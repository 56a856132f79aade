// Batch norm on a stretch of some rows, and layer norm and RMS norm of one row, in plain scalar
// form that the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/layers.h. One pass over a row does all that is done to it: each
// column of batch norm brings four to six numbers of its own along, which a pass for each operation
// would read from the cache again.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/layers.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// [[gnu::always_inline]] into loops that become vectors only then.
[[gnu::always_inline]] inline float standardized(float x, float mean, float inverse_std) {
  return (x - mean) * inverse_std;
}

void batch_norm(float* __restrict y, std::int64_t ld_y, const float* __restrict x,
                std::int64_t ld_x, const NormColumns& columns, std::int64_t rows, std::int64_t n) {
  const float* __restrict mean = columns.mean;
  const float* __restrict inverse_std = columns.inverse_std;
  const float* __restrict gain = columns.gain;
  const float* __restrict bias = columns.bias;
  for (std::int64_t r = 0; r < rows; ++r, x += ld_x, y += ld_y) {
    const auto shifted = [=](std::int64_t i) {
      return standardized(x[i], mean[i], inverse_std[i]) * gain[i] + bias[i];
    };
    if (columns.rectify) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float value = shifted(i);
        y[i] = value < 0.0f ? 0.0f : value;
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) y[i] = shifted(i);
    }
  }
}

void add_batch_norm_sums_of_row(double* __restrict sum_dy, double* __restrict sum_dy_z,
                                float* __restrict dy, const float* __restrict x,
                                const NormColumns& columns, std::int64_t n) {
  const float* __restrict mean = columns.mean;
  const float* __restrict inverse_std = columns.inverse_std;
  const float* __restrict gain = columns.gain;
  const float* __restrict bias = columns.bias;
  // Floats and doubles in loops of their own, as their vectors hold different numbers of them.
  constexpr std::int64_t kTogether = 64;
  float z[kTogether];
  for (std::int64_t begin = 0; begin < n; begin += kTogether) {
    const std::int64_t count = std::min(kTogether, n - begin);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t i = begin + j;
      z[j] = standardized(x[i], mean[i], inverse_std[i]);
    }
    if (columns.rectify) {
      for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t i = begin + j;
        dy[i] *= z[j] * gain[i] + bias[i] > 0.0f ? 1.0f : 0.0f;
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t i = begin + j;
      const double gradient = static_cast<double>(dy[i]);
      sum_dy[i] += gradient;
      sum_dy_z[i] += gradient * static_cast<double>(z[j]);
    }
  }
}

void add_batch_norm_sums(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                         std::int64_t ld, const NormColumns& columns, std::int64_t rows,
                         std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, dy += ld, x += ld) {
    add_batch_norm_sums_of_row(sum_dy, sum_dy_z, dy, x, columns, n);
  }
}

void batch_norm_gradient(float* __restrict dy, const float* __restrict x, std::int64_t ld,
                         const NormColumns& columns, const float* __restrict factor,
                         const float* __restrict mean_dy, const float* __restrict mean_dy_z,
                         std::int64_t rows, std::int64_t n) {
  const float* __restrict mean = columns.mean;
  const float* __restrict inverse_std = columns.inverse_std;
  for (std::int64_t r = 0; r < rows; ++r, dy += ld, x += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float z = standardized(x[i], mean[i], inverse_std[i]);
      dy[i] = factor[i] * (dy[i] - mean_dy[i] - z * mean_dy_z[i]);
    }
  }
}

void row_norm(float* __restrict y, const float* __restrict x, const RowNorm& norm,
              const float* __restrict bias, std::int64_t n) {
  const float mean = norm.mean, inverse_std = norm.inverse_std;
  const float* __restrict gain = norm.gain;
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse_std * gain[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse_std * gain[i] + bias[i];
  }
}

void add_row_norm_gradients(float* __restrict dgain, float* __restrict dbias,
                            const float* __restrict dy, const float* __restrict x,
                            const RowNorm& norm, std::int64_t n) {
  const float mean = norm.mean, inverse_std = norm.inverse_std;
  for (std::int64_t i = 0; i < n; ++i) dgain[i] += dy[i] * ((x[i] - mean) * inverse_std);
  if (dbias == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) dbias[i] += dy[i];
}

void row_norm_gradient(float* __restrict dy, const float* __restrict x, const RowNorm& norm,
                       float mean_dz, float mean_dz_z, std::int64_t n) {
  const float mean = norm.mean, inverse_std = norm.inverse_std;
  const float* __restrict gain = norm.gain;
  for (std::int64_t i = 0; i < n; ++i) {
    const float z = (x[i] - mean) * inverse_std;
    dy[i] = inverse_std * (gain[i] * dy[i] - mean_dz - z * mean_dz_z);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
