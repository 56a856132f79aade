// Values of fp32 masters, gamma times a trit, in plain scalar loops that the compiler vectorises.
//
// A master counts as 1 where master / gamma, rounded to a float, is above 1/2: exactly where it is
// above gamma / 2, as the next float after that is more than half of a last place of 1/2 away from
// it when divided by gamma. So nothing has to be divided.
#pragma once

#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void decode_ternary_master(float* __restrict out, const float* __restrict master, float gamma,
                           std::int64_t n) {
  // 0 times every finite number, and NaN for what has gone wrong.
  const float half = 0.5f * gamma, zero = 0.0f * gamma;
  for (std::int64_t i = 0; i < n; ++i) {
    const float m = master[i];
    out[i] = (m > half ? gamma : m < -half ? -gamma : zero) + 0.0f * m;
  }
}

std::int64_t descend_ternary_master(float* __restrict master, const float* __restrict direction,
                                    float lr, float gamma, std::int64_t n) {
  const float half = 0.5f * gamma;
  std::int32_t changed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float before = master[i];
    const float after = before - lr * direction[i];
    changed += (before > half) != (after > half) || (before < -half) != (after < -half);
    master[i] = after;
  }
  return changed;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
