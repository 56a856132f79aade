// latent8: trit and accumulator in one byte, 255 states; 1 byte.
//
// Code c in [-127, 127], 85 levels per trit: value T = (c > 42) - (c < -42), master = c / 85, so
// the residual is within half a trit and the master within +-1.494. Code -128 never occurs. The
// arithmetic is that of ternary with carry and threshold 42. As there is no packed plane, it is 0.2
// bytes smaller in training, and 0.8 bytes larger at inference unless its trits are packed then.
#pragma once

#include <cmath>

#include "engine/formats/descend.h"
#include "engine/formats/trit_layout.h"

namespace tritgrad {

class Latent8 {
 public:
  static constexpr int kThreshold = 42;
  static constexpr int kLevels = 2 * kThreshold + 1;
  static constexpr int kMaxCode = 127;
  static_assert(kLevels + kThreshold == kMaxCode);
  static constexpr FormatTraits kTraits{.kind = FormatKind::kLatent8,
                                        .name = "latent8",
                                        .holds_trits = true,
                                        .levels_per_trit = kLevels,
                                        .highest_hysteresis = kThreshold,
                                        .reads_directions = true,
                                        .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"code", Dtype::kI8, shape.size(), value_category, true}};
  }

  Latent8(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        order_(shape.rows(), shape.cols(), kBlock),
        rounding_(spec.rounding),
        hysteresis_(spec.flips.hysteresis),
        codes_(static_cast<std::size_t>(spec_.bytes()), value_category) {}

  std::vector<Plane> planes() const { return {{spec_, codes_.bytes(), order_}}; }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading) const {
    return {{{at(first), rows, first.n, order_.width(first.col)}}};
  }
  TritLayout trit_layout() const {
    return {.kind = TritLayout::Kind::kCodeAByte,
            .bytes = codes_.bytes().data(),
            .cols = cols_,
            .order = order_,
            .threshold = kThreshold};
  }
  void decode_value(const Block& block, float* out) const {
    kernels().codecs.latent_to_float(out, at(block), kThreshold, block.n);
  }

  void decode_master(const Block& block, float* out) const {
    const std::int8_t* codes = at(block);
    for (std::int64_t i = 0; i < block.n; ++i) {
      out[i] = static_cast<float>(codes[i]) * (1.0f / kLevels);
    }
  }

  // Writes the nearest level, whatever the rounding of updates is: writing is not an update.
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::int8_t* codes = at(block);
    for (std::int64_t i = 0; i < block.n; ++i) {
      const float level = std::clamp(master[i] * kLevels, -127.0f, 127.0f);
      codes[i] = static_cast<std::int8_t>(std::lrint(level));
    }
  }

  FlipCounts descend(const BlockUpdate& update) {
    const BlockSeries& series = update.blocks;
    const std::span<const Direction> directions = update.directions;
    const Descent& descent = update.descent;
    double* squares = update.squares;
    const SeriesRounding roundings =
        update_rounding(series, directions.size(), cols_, descent, kLevels, kLevels, rounding_);
    return kernels().updates.descend_latent(
        at(series.first), offset(series[1]) - offset(series.first),
        {directions.data(), roundings.data(), std::ssize(directions), series.first.n, squares},
        kThreshold, hysteresis_);
  }

 private:
  std::int64_t offset(const Block& block) const { return order_.offset(block.row, block.col); }
  std::int8_t* at(const Block& block) const { return codes_.as<std::int8_t>() + offset(block); }

  PlaneSpec spec_;
  std::int64_t cols_;
  ColumnBlocks order_;
  Rounding rounding_;
  int hysteresis_;
  Buffer codes_;
};
static_assert(Format<Latent8>);

}  // namespace tritgrad
