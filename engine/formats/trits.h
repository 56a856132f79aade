// trits: packed base-3 trits (engine/formats/packed_trits.h) and nothing beside them; 0.2 bytes.
//
// Value and master are the bare trit. No residual is kept: with stochastic rounding chance carries
// what an update could not express, with rounding to nearest an update of at most half a trit is
// lost for good. That is the control which must fail, unless the optimizer keeps the rounding error
// elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "engine/formats/descend.h"
#include "engine/formats/packed_trits.h"

namespace tritgrad {

class Trits : public PackedTrits {
 public:
  static constexpr FormatTraits kTraits{.kind = FormatKind::kTrits,
                                        .name = "trits",
                                        .holds_trits = true,
                                        .has_residual = false,
                                        .levels_per_trit = 1,
                                        .reads_directions = true,
                                        .carries_errors = true,
                                        .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {trit_plane(shape, value_category)};
  }

  Trits(const FormatSpec& spec, const Shape& shape, Category value_category)
      : PackedTrits(shape, value_category),
        spec_(trit_plane(shape, value_category)),
        rounding_(spec.rounding) {}

  std::vector<Plane> planes() const { return {{spec_, trit_bytes()}}; }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading) const {
    return {{trit_memory(first, rows)}};
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  // Rounds as the spec says; NaN gives 0.
  void encode(const Block& block, const float* master, const RandomKey& key) {
    if (rounding_ == Rounding::kNearest) return encode_rounded(block, master, nullptr);
    std::array<std::uint16_t, kBlock> noise;
    kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols()));
    encode_rounded(block, master, noise.data());
  }

  FlipCounts descend(const BlockUpdate& update) {
    const BlockSeries& series = update.blocks;
    const std::span<const Direction> directions = update.directions;
    const Descent& descent = update.descent;
    double* squares = update.squares;
    if (update.feedback != nullptr) return descend_with_feedback(update);
    // One level per trit leaves no remainder: the accumulators, one row for all, stay zero.
    constexpr FlipPolicy kOneLevel{.threshold = 0,
                                   .on_flip = OnFlip::kCarry,
                                   .transition = Transition::kStepOneTrit,
                                   .hysteresis = 0};
    std::array<std::int8_t, kBlock> accumulators{};
    const SeriesRounding roundings =
        update_rounding(series, directions.size(), cols(), descent, 1, 2, rounding_);
    const DirectionRows rows{directions.data(), roundings.data(), std::ssize(directions),
                             series.first.n, squares};
    return move_trits(series, directions.size(), [&](FlipCounts* counts, std::int8_t* trits) {
      kernels().updates.descend_ternary(counts, trits, kBlock, accumulators.data(), 0, rows,
                                        kOneLevel);
    });
  }

 private:
  // What is wanted is clamped to half a step beyond the grid: an update that leaves it is no error
  // to carry.
  FlipCounts descend_with_feedback(const BlockUpdate& update) {
    const Block& block = update.blocks.first;
    const Descent& descent = update.descent;
    const ErrorFeedback& feedback = *update.feedback;
    std::array<float, kBlock> numbers;
    const float* direction = as_floats(update.directions[0], block.n, numbers.data());
    std::array<std::uint16_t, kBlock> noise;
    const bool stochastic = rounding_ == Rounding::kStochastic;
    if (stochastic) {
      kernels().codecs.random_u16(noise.data(), block.n, descent.key, noise_index(block, cols()));
    }
    std::array<std::int8_t, kBlock> trits;
    decode_trits(block, trits.data());
    FlipCounts counts;
    counts.flips =
        kernels().updates.carry_trits(trits.data(), feedback.momentum, direction, feedback.gain,
                                      {descent.lr, feedback.alpha, feedback.rescale},
                                      stochastic ? noise.data() : nullptr, block.n);
    if (counts.flips > 0) encode_trits(block, trits.data());
    return counts;
  }
  PlaneSpec spec_;
  Rounding rounding_;
};
static_assert(Format<Trits>);

}  // namespace tritgrad
