// Kernels of causal attention, one head of one sequence at a time. Position i sees positions j <=
// i.
//
// s_ij = q_i . k_j / sqrt(size);  p_ij = e^(s_ij - largest_i) inverse_sum_i, whose sum over j is 1;
// y_i = sum over j of p_ij v_j. The probabilities are never in memory but for a tile of queries and
// keys; backward computes them anew (Dao et al. 2022).
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"

namespace tritgrad {

// The largest size of a head: so much fits the stack.
inline constexpr std::int64_t kMostHeadSize = 256;

// The extents of a head: `size` elements of each of `tokens` rows, which are ld apart in q, y and
// their gradients, and ld_kv in k, v and theirs.
struct AttentionHead {
  std::int64_t tokens, size, ld, ld_kv;
};

// What backward needs to know of the softmax of each row, [tokens] each.
struct SoftmaxRows {
  float* largest;
  float* inverse_sum;
};

struct AttentionInputs {
  const float* q;
  const float* k;
  const float* v;
};
struct AttentionGradients {
  float* q;
  float* k;
  float* v;
  bool add_q;  // dq is added to, else written; dk and dv are always added to
};

// Their sums are fused and in an order of their own on every instruction set, so bits differ
// between them. A NaN reaches all rows that see it, and perhaps some before.
struct AttentionKernels {
  // Writes y and the rows of the softmax.
  void (*attend_head)(float* y, const SoftmaxRows& rows, const AttentionInputs& in,
                      const AttentionHead& head);
  // Makes the gradients from that of y; dq may lie where dy does.
  void (*attend_head_gradient)(const AttentionGradients& gradients, const float* dy, const float* y,
                               const SoftmaxRows& rows, const AttentionInputs& in,
                               const AttentionHead& head);
  // y [size] of one query [size] that sees all head.tokens keys.
  void (*attend_query)(float* y, const AttentionInputs& in, const AttentionHead& head);
};

}  // namespace tritgrad
