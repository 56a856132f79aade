// The loops of a transformer's layers beside its products and attention, in plain scalar form that
// the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/layers.h.
#pragma once

#include <cstdint>

#include "engine/kernels/layers.h"
#include "ops/kernels/layers/exp-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void rotate_pairs(float* __restrict x, const float* __restrict cosines,
                  const float* __restrict sines, std::int64_t pairs) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosines[i] - b * sines[i];
    x[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

// 1 / (1 + e^-x), and 1 less that: of e^-|x|, which does not overflow, and without a difference
// that would cancel.
struct Sigmoid {
  float value, rest;
};
[[gnu::always_inline]] inline Sigmoid sigmoid(float x) {
  const float e = decaying_exp(-__builtin_fabsf(x));
  const float large = 1.0f / (1.0f + e), small = e / (1.0f + e);
  return {x < 0.0f ? small : large, x < 0.0f ? large : small};
}

void swiglu(float* __restrict y, const float* __restrict gate, const float* __restrict up,
            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = gate[i] * sigmoid(gate[i]).value * up[i];
}

void swiglu_gradient(float* __restrict dgate, float* __restrict dy, const float* __restrict gate,
                     const float* __restrict up, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Sigmoid s = sigmoid(gate[i]);
    const float silu = gate[i] * s.value;
    dgate[i] = dy[i] * up[i] * (s.value + silu * s.rest);
    dy[i] *= silu;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
