// The loops of attention over rows of scores [keys x queries], in plain scalar form that the
// compiler vectorises. A query is a lane.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/kernels/attention.h"
#include "ops/kernels/layers/exp-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Queries, or keys, of a tile.
constexpr std::int64_t kTileRows = 64;

// Below every score.
constexpr float kHidden = -std::numeric_limits<float>::infinity();

void fill_floats(float* __restrict out, float value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = value;
}
void copy_floats(float* __restrict out, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i];
}
void add_floats(float* __restrict out, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += x[i];
}

// A NaN is not seen here, and not lost either: the sum of exponentials will be one.
void raise_largest(float* __restrict largest, const float* __restrict scores, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    largest[i] = scores[i] > largest[i] ? scores[i] : largest[i];
  }
}

// Scores become e^(score - largest), and are added to the sums.
void exponentials(float* __restrict scores, float* __restrict sums, const float* __restrict largest,
                  std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    scores[i] = decaying_exp(scores[i] - largest[i]);
    sums[i] += scores[i];
  }
}

// What was added up relative to the largest score before is worth `shrink` of it now.
void shrink_sums(float* __restrict shrink, float* __restrict sums, const float* __restrict before,
                 const float* __restrict largest, const float* __restrict added, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    shrink[i] = decaying_exp(before[i] - largest[i]);
    sums[i] = sums[i] * shrink[i] + added[i];
  }
}

void scale_row(float* __restrict out, const float* __restrict x, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * factor;
}

// Scores become probabilities p, and their gradients dp those of the products that scores are
// `factor` of: factor p (dp - mean).
void probabilities_and_gradients(float* __restrict p, float* __restrict dp,
                                 const float* __restrict largest,
                                 const float* __restrict inverse_sum, const float* __restrict mean,
                                 float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    p[i] = decaying_exp(p[i] - largest[i]) * inverse_sum[i];
    dp[i] = p[i] * (dp[i] - mean[i]) * factor;
  }
}

// Takes all rows times a factor of their own.
void shrink_rows(float* rows, const float* factors, std::int64_t count, std::int64_t padded) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (factors[i] == 1.0f) continue;
    for (std::int64_t c = 0; c < padded; ++c) rows[i * padded + c] *= factors[i];
  }
}

float score_factor(std::int64_t size) { return 1.0f / std::sqrt(static_cast<float>(size)); }

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
