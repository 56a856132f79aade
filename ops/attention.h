// Causal attention with grouped heads, without memory quadratic in the length of a sequence.
#pragma once

#include <cstdint>

#include "engine/tape.h"

namespace tritgrad {

// Query head h reads key head h / (heads / kv_heads); a sequence has `tokens` rows.
struct AttentionShape {
  std::int64_t heads, kv_heads, tokens;
};

// q [n * tokens, heads * size], k and v [n * tokens, kv_heads * size] -> y [n * tokens, heads *
// size]: in each head and sequence, row i is the mean of v's rows j <= i, weighted by softmax_j(q_i
// . k_j / sqrt(size)) (Vaswani et al. 2017; grouped heads: Ainslie et al. 2023). Memory beside y is
// two floats a row and head: backward computes the weights anew from tiles (Dao et al. 2022), and
// reads q, k, v and y. A NaN reaches every row that sees it. Throws Error for shapes that do not
// fit, and for a head of more than 256 elements.
Var causal_attention(Tape& tape, const Var& q, const Var& k, const Var& v,
                     const AttentionShape& shape);

// The row y [heads * size] of one query q [heads * size] that sees all `positions` rows of keys and
// values [positions, kv_heads * size], as kept while text is generated. It is the last row that
// causal_attention() would give but for the order of sums.
void attend(const float* q, const float* keys, const float* values, std::int64_t positions,
            std::int64_t heads, std::int64_t kv_heads, std::int64_t size, float* y);

}  // namespace tritgrad
