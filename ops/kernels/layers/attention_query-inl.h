// Attention of one query, whose lanes are keys and then columns of values: there is no tile of
// queries for which anything could be transposed or kept.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention.h"
#include "ops/kernels/layers/attention_loops-inl.h"
#include "ops/kernels/layers/attention_products-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// out[c] += the sum over rows of weights[row] rows[row][c], for whole blocks of columns. Four rows
// have sums of their own, as each addition waits for the one before.
void add_weighted_rows(float* out, const float* weights, const VectorOperand& rows,
                       std::int64_t count, std::int64_t columns) {
  constexpr int kChains = 4, kSums = kChains * kBlockVectors;
  for (std::int64_t c = 0; c < columns; c += kBlockColumns) {
    F32 sum[kSums];
    unrolled<kSums>([&]<int i>() { sum[i] = F32(0.0f); });
    const auto add_row = [&]<int chain>(std::int64_t row) {
      const F32 weight(weights[row]);
      unrolled<kBlockVectors>([&]<int v>() {
        const F32 numbers = read<F32>(rows.at + row * rows.ld + c + v * kLanes<F32>);
        F32& to = sum[chain * kBlockVectors + v];
        to = multiply_add(weight, numbers, to);
      });
    };
    std::int64_t row = 0;
    for (; row + kChains <= count; row += kChains) {
      unrolled<kChains>([&]<int chain>() { add_row.template operator()<chain>(row + chain); });
    }
    for (; row < count; ++row) add_row.template operator()<0>(row);
    unrolled<kBlockVectors>([&]<int v>() {
      float* to = out + c + v * kLanes<F32>;
      const F32 low = sum[v] + sum[kBlockVectors + v];
      const F32 high = sum[2 * kBlockVectors + v] + sum[3 * kBlockVectors + v];
      write(to, read<F32>(to) + (low + high));
    });
  }
}

// Scores of a query with rows of keys, times a factor.
void score_keys(float* scores, const float* q, const VectorOperand& keys, std::int64_t count,
                std::int64_t size, float factor) {
  const std::int64_t whole = size / kLanes<F32> * kLanes<F32>;
  std::int64_t j = 0;
  for (; j + 4 <= count && whole == size; j += 4) {
    const float* k = keys.at + j * keys.ld;
    F32 sum[4];
    unrolled<4>([&]<int i>() { sum[i] = F32(0.0f); });
    for (std::int64_t c = 0; c < whole; c += kLanes<F32>) {
      const F32 numbers = read<F32>(q + c);
      unrolled<4>(
          [&]<int i>() { sum[i] = multiply_add(numbers, read<F32>(k + i * keys.ld + c), sum[i]); });
    }
    write_sums(scores + j, sum[0], sum[1], sum[2], sum[3]);
  }
  for (; j < count; ++j) scores[j] = dot_rows(q, keys.at + j * keys.ld, size);
  for (j = 0; j < count; ++j) scores[j] *= factor;
}

// The softmax of one query, whose lanes are keys.
struct QuerySoftmax {
  float largest = kHidden;
  float sum = 0.0f;

  // Scores of a tile of keys become e^(score - largest); returns what sums before are to be taken
  // times.
  float take(float* scores) {
    alignas(64) float level[kTileRows], added[kTileRows] = {};
    const float before = largest;
    fill_floats(level, largest, kLanes<F32>);
    for (std::int64_t j = 0; j < kTileRows; j += kLanes<F32>) {
      raise_largest(level, scores + j, kLanes<F32>);
    }
    for (std::int64_t lane = 0; lane < kLanes<F32>; ++lane) {
      raise_largest(&largest, level + lane, 1);
    }
    fill_floats(level, largest, kTileRows);
    exponentials(scores, added, level, kTileRows);
    F32 total(0.0f);
    for (std::int64_t j = 0; j < kTileRows; j += kLanes<F32>) total = total + read<F32>(added + j);
    float shrink;
    const float added_up = sum_lanes(total);
    shrink_sums(&shrink, &sum, &before, &largest, &added_up, 1);
    return shrink;
  }
};

void attend_query(float* y, const AttentionInputs& in, const AttentionHead& head) {
  alignas(64) float tile[kTileRows * kMostHeadSize], sums[kMostHeadSize] = {};
  const std::int64_t padded = padded_size(head.size);
  const bool whole_blocks = padded == head.size;
  QuerySoftmax softmax;
  for (std::int64_t j = 0; j < head.tokens; j += kTileRows) {
    const std::int64_t keys = std::min(kTileRows, head.tokens - j);
    const float* k = in.k + j * head.ld_kv;
    const float* v = in.v + j * head.ld_kv;
    alignas(64) float scores[kTileRows];
    score_keys(scores, in.q, {k, head.ld_kv}, keys, head.size, score_factor(head.size));
    fill_floats(scores + keys, kHidden, kTileRows - keys);
    const float shrink = softmax.take(scores);
    shrink_rows(sums, &shrink, 1, padded);
    if (!whole_blocks) copy_tile(tile, v, head.ld_kv, keys, head.size);
    add_weighted_rows(sums, scores,
                      whole_blocks ? VectorOperand{v, head.ld_kv} : VectorOperand{tile, padded},
                      keys, padded);
  }
  scale_row(y, sums, 1.0f / softmax.sum, head.size);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
