// The arithmetic of update rules in plain scalar loops that the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/updates.h and reductions.h.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/kernels/updates.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void add_scaled(float* __restrict out, const float* __restrict x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += factor * x[i];
}

void sgd(float* __restrict direction, float* __restrict m, const float* __restrict grad,
         float momentum, float fresh, bool nesterov, std::int64_t n) {
  if (nesterov) {
    for (std::int64_t i = 0; i < n; ++i) {
      m[i] = momentum * m[i] + fresh * grad[i];
      direction[i] = grad[i] + momentum * m[i];
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      m[i] = momentum * m[i] + fresh * grad[i];
      direction[i] = m[i];
    }
  }
}

// The sign of every number but the infinite ones and NaN, which give 0.
inline float finite_sign(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFu;
  const float sign = x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
  return magnitude < 0x7F800000u ? sign : 0.0f;
}

void sign(float* __restrict direction, const float* __restrict grad, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) direction[i] = finite_sign(grad[i]);
}

void lion(float* __restrict direction, float* __restrict m, const float* __restrict grad,
          const LionConstants& constants, std::int64_t n) {
  const LionConstants c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float ahead = c.beta1 * m[i] + c.one_minus_beta1 * grad[i];
    m[i] = c.beta2 * m[i] + c.one_minus_beta2 * grad[i];
    direction[i] = finite_sign(ahead);
  }
}

bool all_equal(const float* x, std::int64_t n) {
  std::uint32_t differences = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    differences |= std::bit_cast<std::uint32_t>(x[i]) ^ std::bit_cast<std::uint32_t>(x[0]);
  }
  return differences == 0;
}

void normalized(float* __restrict direction, float* __restrict v, const float* __restrict grad,
                float beta, float one_minus_beta, float inverse_bias, std::int64_t n) {
  // A moment of one number: one root for all.
  if (n > 0 && all_equal(v, n)) {
    const float decayed = beta * v[0];
    const float root = __builtin_sqrtf(v[0] * inverse_bias);
    const float inverse = 1.0f / root;
    for (std::int64_t i = 0; i < n; ++i) {
      const float g = grad[i];
      v[i] = decayed + (one_minus_beta * g) * g;
      const float normalized = g * inverse;
      direction[i] = root > 0.0f ? normalized : 0.0f;
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    const float root = __builtin_sqrtf(v[i] * inverse_bias);
    v[i] = beta * v[i] + (one_minus_beta * g) * g;
    const float normalized = g * (1.0f / root);
    direction[i] = root > 0.0f ? normalized : 0.0f;
  }
}

void divide_by_roots(float* __restrict direction, const float* __restrict squares, float rate,
                     float eps, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float quotient = rate * direction[i] / (__builtin_sqrtf(squares[i]) + eps);
    direction[i] = direction[i] == 0.0f ? 0.0f : quotient;
  }
}

void adam_gain(float* __restrict gain, const float* __restrict v, float inverse_bias1,
               float inverse_bias2, float eps, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    gain[i] = inverse_bias1 / (__builtin_sqrtf(v[i] * inverse_bias2) + eps);
  }
}

void carry_error(float* __restrict momentum, const float* __restrict wanted,
                 const float* __restrict stored, const float* __restrict gain, float alpha,
                 float rescale, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float error = alpha * (wanted[i] - stored[i]);
    momentum[i] = rescale * (momentum[i] + (gain == nullptr ? error : error / gain[i]));
  }
}

bool all_finite(const float* x, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < 0x7F800000u;
}

bool all_finite_bf16(const std::uint16_t* x, std::int64_t n) {
  std::uint16_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<std::uint16_t>(x[i] & 0x7FFFu);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest < 0x7F80u;
}

// The order of magnitudes that are no NaN is that of their bits.
float max_abs(const float* x, std::int64_t n) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest);
}

void limit(float* x, float most, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float number = x[i] == x[i] ? x[i] : 0.0f;
    const float below = number < most ? number : most;
    x[i] = below > -most ? below : -most;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
