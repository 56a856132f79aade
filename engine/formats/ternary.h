// ternary: packed base-3 trits (engine/formats/packed_trits.h) and one int8 accumulator per weight;
// 1.2 bytes.
//
// The value is the bare trit T. With carry, master = T + A / K, K = 2 threshold + 1 levels: a
// fixed-point number of log2(3 K) bits. With reset, A counts votes and is no fraction of a trit; it
// is read as A / 256 so that reading and writing the master loses nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "engine/formats/descend.h"
#include "engine/formats/packed_trits.h"

namespace tritgrad {

class Ternary : public PackedTrits {
 public:
  static constexpr FormatTraits kTraits{.kind = FormatKind::kTernary,
                                        .name = "ternary",
                                        .holds_trits = true,
                                        .reads_directions = true,
                                        .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {trit_plane(shape, value_category),
            {"accumulator", Dtype::kI8, shape.size(), Category::kResiduals, false}};
  }

  Ternary(const FormatSpec& spec, const Shape& shape, Category value_category)
      : PackedTrits(shape, value_category),
        specs_(plane_specs(spec, shape, value_category)),
        rounding_(spec.rounding),
        policy_(spec.flips),
        accumulators_(static_cast<std::size_t>(specs_[1].bytes()), Category::kResiduals) {
    check(policy_.threshold >= 0 && policy_.threshold <= 126, "ternary: flip threshold ",
          policy_.threshold, " is outside 0..126 (an int8 accumulator must be able to cross it)");
  }

  std::vector<Plane> planes() const {
    return {{specs_[0], trit_bytes()}, {specs_[1], accumulators_.bytes()}};
  }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading reading) const {
    PrefetchList memory{{trit_memory(first, rows)}};
    if (reading == Reading::kMaster) {
      memory.planes[1] = {accumulator(first), rows, first.n, cols()};
    }
    return memory;
  }
  void decode_master(const Block& block, float* out) const {
    decode_value(block, out);
    const std::int8_t* a = accumulator(block);
    const float unit = 1.0f / static_cast<float>(master_levels());
    for (std::int64_t i = 0; i < block.n; ++i) out[i] += static_cast<float>(a[i]) * unit;
  }

  // Writes the nearest level, whatever the rounding of updates is: writing is not an update.
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::array<std::int8_t, kBlock> trits;
    std::int8_t* a = accumulator(block);
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
    encode_trits(block, trits.data());
  }

  FlipCounts descend(const BlockUpdate& update) {
    const BlockSeries& series = update.blocks;
    const std::span<const Direction> directions = update.directions;
    const Descent& descent = update.descent;
    double* squares = update.squares;
    // With reset, a smaller lr is a higher threshold, and below 1/127 thinner votes.
    FlipPolicy policy = policy_;
    policy.threshold = threshold_for(policy_, descent.lr);
    const int k = policy.levels_per_trit();
    const SeriesRounding roundings =
        update_rounding(series, directions.size(), cols(), descent, k, k, rounding_);
    const DirectionRows rows{directions.data(), roundings.data(), std::ssize(directions),
                             series.first.n, squares};
    return move_trits(series, directions.size(), [&](FlipCounts* counts, std::int8_t* trits) {
      kernels().updates.descend_ternary(counts, trits, kBlock, accumulator(series.first),
                                        offset(series[1]) - offset(series.first), rows, policy);
    });
  }

 private:
  int master_levels() const {
    return policy_.on_flip == OnFlip::kCarry ? policy_.levels_per_trit() : 256;
  }
  std::int64_t offset(const Block& block) const { return block.row * cols() + block.col; }
  std::int8_t* accumulator(const Block& block) const {
    return accumulators_.as<std::int8_t>() + offset(block);
  }

  std::vector<PlaneSpec> specs_;
  Rounding rounding_;
  FlipPolicy policy_;
  Buffer accumulators_;
};
static_assert(Format<Ternary>);

}  // namespace tritgrad
