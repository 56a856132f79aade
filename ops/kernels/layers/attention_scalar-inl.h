// Causal attention as its formulas say, in double: the specification.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/kernels/attention.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// The scores of a query of a head, rounded to floats, as the largest is kept as one.
struct QueryScores {
  const float* q;
  const float* keys;
  const AttentionHead& head;

  double factor() const { return 1.0 / std::sqrt(static_cast<double>(head.size)); }
  double operator()(std::int64_t j) const {
    return double{static_cast<float>(factor() * dot(q, keys + j * head.ld_kv, head.size))};
  }
};

// y of a query that sees `seen` keys; returns the largest score and the inverse sum.
void attend_to(float* y, float* largest, float* inverse_sum, const QueryScores& scores,
               const float* values, std::int64_t seen) {
  const AttentionHead& head = scores.head;
  double most = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (std::int64_t j = 0; j < seen; ++j) most = std::max(most, scores(j));
  double sums[kMostHeadSize] = {};
  *largest = static_cast<float>(most);
  for (std::int64_t j = 0; j < seen; ++j) {
    const double p = std::exp(scores(j) - double{*largest});
    const float* v = values + j * head.ld_kv;
    sum += p;
    for (std::int64_t c = 0; c < head.size; ++c) sums[c] += p * double{v[c]};
  }
  *inverse_sum = static_cast<float>(1.0 / sum);
  for (std::int64_t c = 0; c < head.size; ++c) y[c] = static_cast<float>(sums[c] / sum);
}

void attend_head(float* y, const SoftmaxRows& rows, const AttentionInputs& in,
                 const AttentionHead& head) {
  for (std::int64_t i = 0; i < head.tokens; ++i) {
    attend_to(y + i * head.ld, rows.largest + i, rows.inverse_sum + i,
              {in.q + i * head.ld, in.k, head}, in.v, i + 1);
  }
}

void attend_query(float* y, const AttentionInputs& in, const AttentionHead& head) {
  float largest, inverse_sum;
  attend_to(y, &largest, &inverse_sum, {in.q, in.k, head}, in.v, head.tokens);
}

void attend_head_gradient(const AttentionGradients& gradients, const float* dy, const float* y,
                          const SoftmaxRows& rows, const AttentionInputs& in,
                          const AttentionHead& head) {
  for (std::int64_t i = 0; i < head.tokens; ++i) {
    const QueryScores scores{in.q + i * head.ld, in.k, head};
    const float* dy_row = dy + i * head.ld;
    const double mean = dot(dy_row, y + i * head.ld, head.size);
    double dq[kMostHeadSize] = {};
    for (std::int64_t j = 0; j <= i; ++j) {
      const std::int64_t at = j * head.ld_kv;
      const double p = std::exp(scores(j) - double{rows.largest[i]}) * double{rows.inverse_sum[i]};
      const double ds = scores.factor() * p * (dot(dy_row, in.v + at, head.size) - mean);
      for (std::int64_t c = 0; c < head.size; ++c) {
        dq[c] += ds * double{in.k[at + c]};
        gradients.k[at + c] += static_cast<float>(ds * double{scores.q[c]});
        gradients.v[at + c] += static_cast<float>(p * double{dy_row[c]});
      }
    }
    float* to = gradients.q + i * head.ld;
    for (std::int64_t c = 0; c < head.size; ++c) {
      to[c] = (gradients.add_q ? to[c] : 0.0f) + static_cast<float>(dq[c]);
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
