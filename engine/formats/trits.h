// trits: packed base-3 trits (five to a byte, 1.6 bits) and nothing beside them; 0.2 bytes.
//
// Value and master are the bare trit T in {-1, 0, 1}; its scale is a parameter of its own. The
// bytes are those of the plane `trits` of ternary (engine/formats/ternary.h). No residual is kept:
// with stochastic rounding chance carries what an update could not express, with rounding to
// nearest an update of at most half a trit is lost for good. That is the control which must fail,
// unless the optimizer keeps the rounding error elsewhere.
#pragma once

#include <algorithm>
#include <array>

#include "engine/descend.h"
#include "engine/format.h"
#include "engine/formats/ternary.h"
#include "engine/kernel_table.h"

namespace tritgrad {

class Trits {
 public:
  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"trits", Dtype::kU8, shape.rows() * Ternary::row_bytes(shape.cols()), value_category,
             true}};
  }

  Trits(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        trits_(static_cast<std::size_t>(spec_.bytes()), value_category) {
    constexpr std::array<std::int8_t, kBlock> zeros{};
    for_each_block(shape, [&](const Block& block) {
      kernels().encode_trits(packed(block), zeros.data(), block.n);
    });
  }

  std::vector<Plane> planes() const { return {{spec_, trits_.bytes()}}; }

  void prefetch(const Block& block, Reading) const {
    tritgrad::prefetch(packed(block), (block.n + 4) / 5);
  }
  void decode_trits(const Block& block, std::int8_t* out) const {
    kernels().decode_trits(out, packed(block), block.n);
  }
  // sums[r - begin] = the sum of (trit + 1) x along row r.
  void dot_rows(std::int64_t begin, std::int64_t end, const std::int8_t* x,
                std::int32_t* sums) const {
    kernels().dot_packed_trits(sums, packed({begin}), Ternary::row_bytes(cols_), end - begin, x,
                               cols_);
  }
  void decode_value(const Block& block, float* out) const {
    std::array<std::int8_t, kBlock> trits;
    decode_trits(block, trits.data());
    kernels().trits_to_float(out, trits.data(), block.n);
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }
  void dead_zone(const Block& block, float* out) const {
    std::fill_n(out, block.n, lost_share(rounding_));
  }

  // Rounds as the spec says; NaN gives 0.
  void encode(const Block& block, const float* master, const RandomKey& key) {
    std::array<std::int16_t, kBlock> levels;
    std::array<std::uint16_t, kBlock> noise;
    const bool stochastic = rounding_ == Rounding::kStochastic;
    if (stochastic) kernels().random_u16(noise.data(), block.n, key, noise_index(block, cols_));
    const LevelRounding rounding{-1.0f, 1, stochastic ? noise.data() : nullptr};
    kernels().quantize_levels(levels.data(), master, rounding, block.n);
    std::array<std::int8_t, kBlock> trits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.n); ++i) {
      trits[i] = static_cast<std::int8_t>(levels[i]);
    }
    kernels().encode_trits(packed(block), trits.data(), block.n);
  }

  FlipCounts descend(const Block& block, const Direction& direction, const Descent& descent) {
    const UpdateRounding rounding(block, cols_, descent, 1, 2, rounding_);
    std::array<std::int8_t, kBlock> trits;
    kernels().decode_trits(trits.data(), packed(block), block.n);
    // One level per trit leaves no remainder: the accumulators stay zero.
    constexpr FlipPolicy one_level{.threshold = 0,
                                   .on_flip = OnFlip::kCarry,
                                   .transition = Transition::kStepOneTrit,
                                   .hysteresis = 0};
    std::array<std::int8_t, kBlock> accumulators{};
    const FlipCounts counts = kernels().descend_ternary(
        trits.data(), accumulators.data(), direction, rounding.get(), one_level, block.n);
    if (counts.flips > 0) kernels().encode_trits(packed(block), trits.data(), block.n);
    return counts;
  }

 private:
  std::uint8_t* packed(const Block& block) const {
    return trits_.as<std::uint8_t>() + block.row * Ternary::row_bytes(cols_) + block.col / 5;
  }

  PlaneSpec spec_;
  std::int64_t cols_;
  Rounding rounding_;
  Buffer trits_;
};
static_assert(Format<Trits>);

}  // namespace tritgrad
