// Layer norm and RMS norm of one row, in plain scalar form that the compiler vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). The contracts are those
// of engine/kernels/kernel_table.h.
#pragma once

#include <cstdint>

#include "engine/kernels/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

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
