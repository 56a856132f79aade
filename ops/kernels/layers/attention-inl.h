// Causal attention in tiles of queries and keys (FlashAttention, Dao et al. 2022).
//
// Scores lie as [keys x queries]: a query is a lane, so that the largest score and the sum of a
// softmax are those of columns, and no lane looks at another. Then every product has one operand
// whose elements are repeated in all lanes, as it lies in memory, and one that is read by vectors:
// transposed queries for scores, else rows of a tile. What the mask hides of a tile on the diagonal
// is left out by blocks, and is 0 within them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention.h"
#include "ops/kernels/layers/attention_loops-inl.h"
#include "ops/kernels/layers/attention_products-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// A tile of keys before or at (`diagonal`) a tile of queries; both begin at a multiple of
// kTileRows.
struct TilePair {
  std::int64_t keys, queries, size;
  bool diagonal;

  // The first query of a block that sees something of a block of keys.
  std::int64_t first_query(std::int64_t key) const {
    return diagonal ? key / kBlockColumns * kBlockColumns : 0;
  }
  // How many keys a block of queries sees at most.
  std::int64_t seen_keys(std::int64_t query) const {
    return diagonal ? std::min(keys, query + kBlockRows) : keys;
  }
};

// products [keys x queries] of rows of keys (or values) with transposed queries (or their dy).
void multiply_queries(float* products, const TilePair& pair, const float* rows, std::int64_t ld,
                      const float* transposed) {
  for (std::int64_t j = 0; j < pair.keys; j += kBlockRows) {
    const std::int64_t first = pair.first_query(j);
    multiply_rows(products + j * kTileRows + first, kTileRows, {rows + j * ld, ld, 1},
                  {transposed + first, kTileRows},
                  std::min<std::int64_t>(kBlockRows, pair.keys - j), kTileRows - first, pair.size,
                  false);
  }
}

// out [queries x padded] = or += the sums over keys of weights [keys x queries] and a tile of rows.
void sum_over_keys(float* out, const TilePair& pair, const float* weights, const float* tile,
                   bool add) {
  const std::int64_t padded = padded_size(pair.size);
  for (std::int64_t i = 0; i < pair.queries; i += kBlockRows) {
    multiply_rows(out + i * padded, padded, {weights + i, 1, kTileRows}, {tile, padded}, kBlockRows,
                  padded, pair.seen_keys(i), add);
  }
}

// Adds to rows of keys the sums over queries of weights [keys x queries] and a tile of rows.
void add_over_queries(float* to, std::int64_t ld, const TilePair& pair, const float* weights,
                      const float* tile) {
  alignas(64) float sums[kBlockRows * kMostHeadSize];
  const std::int64_t padded = padded_size(pair.size);
  for (std::int64_t j = 0; j < pair.keys; j += kBlockRows) {
    const std::int64_t first = std::min(pair.diagonal ? j : 0, pair.queries);
    const std::int64_t rows = std::min<std::int64_t>(kBlockRows, pair.keys - j);
    multiply_rows(sums, padded, {weights + j * kTileRows + first, kTileRows, 1},
                  {tile + first * padded, padded}, rows, padded, pair.queries - first, false);
    for (std::int64_t r = 0; r < rows; ++r) {
      add_floats(to + (j + r) * ld, sums + r * padded, pair.size);
    }
  }
}

// Hides keys that come after their query.
void hide_later_keys(float* scores, const TilePair& pair) {
  for (std::int64_t j = 0; pair.diagonal && j < pair.keys; ++j) {
    const std::int64_t first = pair.first_query(j / kBlockRows * kBlockRows);
    fill_floats(scores + j * kTileRows + first, kHidden, j - first);
  }
}

// The softmax of a tile of queries over the keys so far.
struct RunningSoftmax {
  alignas(64) float largest[kTileRows];
  alignas(64) float sum[kTileRows];

  RunningSoftmax() {
    fill_floats(largest, kHidden, kTileRows);
    fill_floats(sum, 0.0f, kTileRows);
  }
  // Scores become e^(score - largest); what was summed up before is to be taken times `shrink`.
  void take(float* shrink, float* scores, const TilePair& pair) {
    alignas(64) float before[kTileRows], added[kTileRows] = {};
    copy_floats(before, largest, kTileRows);
    for (std::int64_t j = 0; j < pair.keys; ++j) {
      const std::int64_t first = pair.first_query(j / kBlockRows * kBlockRows);
      raise_largest(largest + first, scores + j * kTileRows + first, kTileRows - first);
    }
    for (std::int64_t j = 0; j < pair.keys; ++j) {
      const std::int64_t first = pair.first_query(j / kBlockRows * kBlockRows);
      exponentials(scores + j * kTileRows + first, added + first, largest + first,
                   kTileRows - first);
    }
    shrink_sums(shrink, sum, before, largest, added, kTileRows);
  }
};

void attend_head(float* y, const SoftmaxRows& rows, const AttentionInputs& in,
                 const AttentionHead& head) {
  alignas(64) float transposed[kMostHeadSize * kTileRows], scores[kTileRows * kTileRows];
  alignas(64) float tile[kTileRows * kMostHeadSize], sums[kTileRows * kMostHeadSize];
  const std::int64_t padded = padded_size(head.size);
  for (std::int64_t first = 0; first < head.tokens; first += kTileRows) {
    const std::int64_t queries = std::min(kTileRows, head.tokens - first);
    copy_tile(tile, in.q + first * head.ld, head.ld, queries, head.size);
    transpose_tile(transposed, tile, padded, score_factor(head.size));
    RunningSoftmax softmax;
    for (std::int64_t j = 0; j <= first; j += kTileRows) {
      const TilePair pair{std::min(kTileRows, head.tokens - j), queries, head.size, j == first};
      multiply_queries(scores, pair, in.k + j * head.ld_kv, head.ld_kv, transposed);
      hide_later_keys(scores, pair);
      alignas(64) float shrink[kTileRows];
      softmax.take(shrink, scores, pair);
      if (j > 0) shrink_rows(sums, shrink, queries, padded);
      copy_tile(tile, in.v + j * head.ld_kv, head.ld_kv, pair.keys, head.size);
      sum_over_keys(sums, pair, scores, tile, j > 0);
    }
    for (std::int64_t i = 0; i < queries; ++i) {
      rows.largest[first + i] = softmax.largest[i];
      rows.inverse_sum[first + i] = 1.0f / softmax.sum[i];
      scale_row(y + (first + i) * head.ld, sums + i * padded, rows.inverse_sum[first + i],
                head.size);
    }
  }
}

// What backward knows of a tile of queries.
struct QueryTile {
  alignas(64) float q[kTileRows * kMostHeadSize], dy[kTileRows * kMostHeadSize];
  alignas(64) float q_transposed[kTileRows * kMostHeadSize];
  alignas(64) float dy_transposed[kTileRows * kMostHeadSize];
  alignas(64) float largest[kTileRows], inverse_sum[kTileRows];
  alignas(64) float mean[kTileRows];  // of dp, by p: the sum of dy y

  void take(const float* dy_, const float* y, const SoftmaxRows& rows, const AttentionInputs& in,
            const AttentionHead& head, std::int64_t first, std::int64_t queries) {
    const std::int64_t padded = padded_size(head.size), begin = first * head.ld;
    copy_tile(q, in.q + begin, head.ld, queries, head.size);
    copy_tile(dy, dy_ + begin, head.ld, queries, head.size);
    transpose_tile(q_transposed, q, padded, score_factor(head.size));
    transpose_tile(dy_transposed, dy, padded, 1.0f);
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const bool there = i < queries;
      largest[i] = there ? rows.largest[first + i] : 0.0f;
      inverse_sum[i] = there ? rows.inverse_sum[first + i] : 0.0f;
      mean[i] = there ? dot_rows(dy + i * padded, y + begin + i * head.ld, head.size) : 0.0f;
    }
  }
};

// Adds what a tile of queries sees of a tile of keys, from key `j` on, to dk and dv; dq is or gets
// added its own share.
void add_pair(float* dq, const AttentionGradients& gradients, const QueryTile& queries,
              const AttentionInputs& in, const AttentionHead& head, const TilePair& pair,
              std::int64_t j) {
  alignas(64) float p[kTileRows * kTileRows], dscores[kTileRows * kTileRows];
  alignas(64) float keys[kTileRows * kMostHeadSize];
  const std::int64_t ld = head.ld_kv, begin = j * ld;
  multiply_queries(p, pair, in.k + begin, ld, queries.q_transposed);
  hide_later_keys(p, pair);
  multiply_queries(dscores, pair, in.v + begin, ld, queries.dy_transposed);
  for (std::int64_t key = 0; key < pair.keys; ++key) {
    const std::int64_t first = pair.first_query(key / kBlockRows * kBlockRows);
    const std::int64_t at = key * kTileRows + first;
    probabilities_and_gradients(p + at, dscores + at, queries.largest + first,
                                queries.inverse_sum + first, queries.mean + first,
                                score_factor(head.size), kTileRows - first);
  }
  add_over_queries(gradients.v + begin, ld, pair, p, queries.dy);
  add_over_queries(gradients.k + begin, ld, pair, dscores, queries.q);
  copy_tile(keys, in.k + begin, ld, pair.keys, head.size);
  sum_over_keys(dq, pair, dscores, keys, j > 0);
}

void attend_head_gradient(const AttentionGradients& gradients, const float* dy, const float* y,
                          const SoftmaxRows& rows, const AttentionInputs& in,
                          const AttentionHead& head) {
  QueryTile tile;
  alignas(64) float dq[kTileRows * kMostHeadSize];
  const std::int64_t padded = padded_size(head.size);
  for (std::int64_t first = 0; first < head.tokens; first += kTileRows) {
    const std::int64_t queries = std::min(kTileRows, head.tokens - first);
    tile.take(dy, y, rows, in, head, first, queries);
    for (std::int64_t j = 0; j <= first; j += kTileRows) {
      const std::int64_t keys = std::min(kTileRows, head.tokens - j);
      add_pair(dq, gradients, tile, in, head, {keys, queries, head.size, j == first}, j);
    }
    for (std::int64_t i = 0; i < queries; ++i) {
      float* to = gradients.q + (first + i) * head.ld;
      if (!gradients.add_q) fill_floats(to, 0.0f, head.size);
      add_floats(to, dq + i * padded, head.size);
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
