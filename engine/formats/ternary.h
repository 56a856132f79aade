// ternary: packed base-3 trits (five to a byte, 1.6 bits) and one int8 accumulator per weight; 1.2
// bytes.
//
// The value is the bare trit T in {-1, 0, 1}; its scale is a parameter of its own, because it is
// trained by another rule. Each row starts on a byte; inside a block of 320 (or the shorter rest of
// a row) trits lie in stripes: with b = ceil(n / 5) bytes, element i is digit i / b of byte i % b,
//
//     byte j = (t_j + 1) + 3 (t_{j+b} + 1) + 9 (t_{j+2b} + 1) + 27 (...) + 81 (...)   in 0..242
//
// so that decoding writes contiguous runs. Stripes instead of neighbours: no shuffles on any
// instruction set. Values 243..255 never occur.
//
// With carry, master = T + A / K, K = 2 threshold + 1 levels: a fixed-point number of log2(3 K)
// bits. With reset, A counts votes and is no fraction of a trit; it is read as A / 256 so that
// reading and writing the master loses nothing.
//
// With B > 1 bands, accumulators exist for one band of rows, ceil(rows / B) neighbours, at a time:
// 0.2 + 1 / B bytes. A training run is one stretch of equal length for each band that has rows; in
// it the rows of that band are trained, at the rates of the run then, and all others rest at their
// trits. What a band has accumulated when its time is over is dropped, and the next one begins at
// 0. So runs must not change their length.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/descend.h"
#include "engine/prefetch.h"

namespace tritgrad {

class Ternary {
 public:
  // Packed bytes of one row.
  static std::int64_t row_bytes(std::int64_t cols) {
    return cols / kBlock * (kBlock / 5) + (cols % kBlock + 4) / 5;
  }

  static std::vector<PlaneSpec> plane_specs(const FormatSpec& spec, const Shape& shape,
                                            Category value_category) {
    std::vector<PlaneSpec> specs = {
        {"trits", Dtype::kU8, shape.rows() * row_bytes(shape.cols()), value_category, true},
        {"accumulator", Dtype::kI8, band_rows(spec, shape) * shape.cols(), Category::kResiduals,
         false, band_rows(spec, shape)}};
    if (spec.bands > 1) specs.push_back({"band", Dtype::kU8, 1, Category::kResiduals, false});
    return specs;
  }

  Ternary(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        rows_(shape.rows()),
        cols_(shape.cols()),
        bands_(spec.bands),
        band_rows_(band_rows(spec, shape)),
        used_bands_(band_rows_ == 0 ? 1 : (shape.rows() + band_rows_ - 1) / band_rows_),
        rounding_(spec.rounding),
        policy_(spec.flips),
        trits_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        accumulators_(static_cast<std::size_t>(specs_[1].bytes()), Category::kResiduals) {
    if (bands_ > 1) band_ = Buffer(1, Category::kResiduals);
    check(policy_.threshold >= 0 && policy_.threshold <= 126, "ternary: flip threshold ",
          policy_.threshold, " is outside 0..126 (an int8 accumulator must be able to cross it)");
    std::array<std::int8_t, kBlock> zeros{};
    for_each_block(shape, [&](const Block& block) {
      kernels().encode_trits(packed(block), zeros.data(), block.n);
    });
  }

  std::vector<Plane> planes() const {
    std::vector<Plane> planes = {{specs_[0], trits_.bytes()}, {specs_[1], accumulators_.bytes()}};
    if (bands_ > 1) planes.push_back({specs_[2], band_.bytes()});
    return planes;
  }

  // Before update `step` of a run, counted from 0.
  void begin_update(std::int64_t step, std::int64_t total_steps) {
    if (bands_ == 1) return;
    const std::int64_t next =
        std::min(used_bands_ - 1, step * used_bands_ / std::max<std::int64_t>(1, total_steps));
    std::uint8_t& band = *band_.as<std::uint8_t>();
    if (next == band) return;
    band = static_cast<std::uint8_t>(next);
    std::fill_n(accumulators_.as<std::int8_t>(), specs_[1].count, std::int8_t{0});
  }

  RowRange trained_rows() const { return {first_row(), std::min(rows_, first_row() + band_rows_)}; }

  void prefetch(const Block& block, Reading reading) const {
    tritgrad::prefetch(packed(block), (block.n + 4) / 5);
    if (reading == Reading::kMaster && has_accumulators(block)) {
      tritgrad::prefetch(accumulator(block), block.n);
    }
  }
  void decode_trits(const Block& block, std::int8_t* out) const {
    kernels().decode_trits(out, packed(block), block.n);
  }
  // sums[r - begin] = the sum of (trit + 1) x along row r.
  void dot_rows(std::int64_t begin, std::int64_t end, const std::int8_t* x,
                std::int32_t* sums) const {
    kernels().dot_packed_trits(sums, packed({begin}), row_bytes(cols_), end - begin, x, cols_);
  }
  void decode_value(const Block& block, float* out) const {
    std::array<std::int8_t, kBlock> trits;
    decode_trits(block, trits.data());
    kernels().trits_to_float(out, trits.data(), block.n);
  }

  void decode_master(const Block& block, float* out) const {
    decode_value(block, out);
    if (!has_accumulators(block)) return;
    const std::int8_t* a = accumulator(block);
    const float unit = 1.0f / static_cast<float>(master_levels());
    for (std::int64_t i = 0; i < block.n; ++i) out[i] += static_cast<float>(a[i]) * unit;
  }

  // With reset the levels of a trit depend on the learning rate: the smallest zone is that of 127.
  void dead_zone(const Block& block, float* out) const {
    const int k = policy_.on_flip == OnFlip::kCarry ? policy_.levels_per_trit() : 127;
    std::fill_n(out, block.n, lost_share(rounding_) / static_cast<float>(k));
  }

  // Nearest level whatever the rounding of updates is: writing is not an update.
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::array<std::int8_t, kBlock> trits;
    std::array<std::int8_t, kBlock> dropped;
    std::int8_t* a = has_accumulators(block) ? accumulator(block) : dropped.data();
    const int k = master_levels();
    const int half = policy_.on_flip == OnFlip::kCarry ? policy_.threshold : 126;
    for (std::int64_t i = 0; i < block.n; ++i) {
      const float limit = static_cast<float>(k + half);
      const float level = std::clamp(master[i] * static_cast<float>(k), -limit, limit);
      const int code = static_cast<int>(std::lrint(level));
      const int trit = (code > half) - (code < -half);
      trits[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(trit);
      a[i] = static_cast<std::int8_t>(std::clamp(code - trit * k, -half, half));
    }
    kernels().encode_trits(packed(block), trits.data(), block.n);
  }

  FlipCounts descend(const Block& block, const Direction& direction, const Descent& descent) {
    if (!has_accumulators(block)) return {};
    // With reset, a smaller lr is a higher threshold, and below 1/127 thinner votes.
    FlipPolicy policy = policy_;
    policy.threshold = threshold_for(policy_, descent.lr);
    const int k = policy.levels_per_trit();
    const UpdateRounding rounding(block, cols_, descent, k, k, rounding_);

    std::array<std::int8_t, kBlock> trits;
    kernels().decode_trits(trits.data(), packed(block), block.n);
    const FlipCounts counts = kernels().descend_ternary(trits.data(), accumulator(block), direction,
                                                        rounding.get(), policy, block.n);
    if (counts.flips > 0) kernels().encode_trits(packed(block), trits.data(), block.n);
    return counts;
  }

 private:
  static std::int64_t band_rows(const FormatSpec& spec, const Shape& shape) {
    check(spec.bands >= 1 && spec.bands <= kMostBands, "ternary: bands = ", spec.bands,
          " is outside 1..", kMostBands);
    return (shape.rows() + spec.bands - 1) / spec.bands;
  }
  // Of the first row that has accumulators now.
  std::int64_t first_row() const {
    return bands_ == 1 ? 0 : *band_.as<std::uint8_t>() * band_rows_;
  }
  bool has_accumulators(const Block& block) const {
    const std::int64_t row = block.row - first_row();
    return row >= 0 && row < band_rows_;
  }
  int master_levels() const {
    return policy_.on_flip == OnFlip::kCarry ? policy_.levels_per_trit() : 256;
  }
  std::uint8_t* packed(const Block& block) const {
    return trits_.as<std::uint8_t>() + block.row * row_bytes(cols_) + block.col / 5;
  }
  std::int8_t* accumulator(const Block& block) const {
    return accumulators_.as<std::int8_t>() + (block.row - first_row()) * cols_ + block.col;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t rows_;
  std::int64_t cols_;
  int bands_;
  std::int64_t band_rows_;
  std::int64_t used_bands_;  // that have rows
  Rounding rounding_;
  FlipPolicy policy_;
  Buffer trits_;
  Buffer accumulators_;
  Buffer band_;  // which one has accumulators; empty if all have
};
static_assert(Format<Ternary>);

}  // namespace tritgrad
