// latent6, latent5, latent4: trit and accumulator in 6, 5 or 4 bits; 0.75, 0.625 or 0.5 bytes.
//
// latent8 with fewer levels (engine/formats/latent8.h): code c, K = 2 threshold + 1 levels per
// trit, value T = (c > threshold) - (c < -threshold), master = c / K.
//
//              threshold    K    codes    master
//     latent6      10       21   -31..31   +-1.48
//     latent5       5       11   -15..15   +-1.36
//     latent4       2        5    -7..7    +-1.40
//
// More levels per trit make the steps of chance finer, but leave fewer codes beyond +-1 trit: the
// thresholds are those that train best.
//
// A block of 320 is 240, 200 or 160 bytes: all low nibbles, then the bits above
// (CodecKernels::pack_codes). Patterns that no code has read as the nearest code.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "engine/formats/descend.h"
#include "engine/formats/format.h"
#include "engine/formats/packed_codes.h"
#include "engine/formats/trit_layout.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

template <int kBits>
class LatentPacked {
 public:
  static_assert(kBits == 4 || kBits == 5 || kBits == 6);
  static constexpr int kThreshold = kBits == 6 ? 10 : kBits == 5 ? 5 : 2;
  static constexpr int kLevels = 2 * kThreshold + 1;
  static constexpr int kMaxCode = (1 << (kBits - 1)) - 1;
  // At this level the arithmetic of engine/formats/flips.h ends, and counts rail flips.
  static constexpr int kRail = kLevels + kThreshold;
  static_assert(kLevels < kMaxCode && kMaxCode <= kRail);
  static constexpr FormatTraits kTraits{.kind = kBits == 6   ? FormatKind::kLatent6
                                                : kBits == 5 ? FormatKind::kLatent5
                                                             : FormatKind::kLatent4,
                                        .name = kBits == 6   ? "latent6"
                                                : kBits == 5 ? "latent5"
                                                             : "latent4",
                                        .holds_trits = true,
                                        .levels_per_trit = kLevels,
                                        .highest_hysteresis = kThreshold,
                                        .reads_directions = true,
                                        .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"code", Dtype::kU8, shape.rows() * packed_row_bytes(kBits, shape.cols()),
             value_category, true}};
  }

  LatentPacked(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        hysteresis_(spec.flips.hysteresis),
        codes_(static_cast<std::size_t>(spec_.bytes()), value_category) {
    check(hysteresis_ >= 0 && hysteresis_ <= kThreshold, "latent", kBits, ": hysteresis ",
          hysteresis_, " is outside 0..", kThreshold, " (the levels between two flips)");
    constexpr std::array<std::int8_t, kBlock> zeros{};
    for_each_block(shape, [&](const Block& block) { pack(block, zeros.data()); });
  }

  std::vector<Plane> planes() const { return {{spec_, codes_.bytes()}}; }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading) const {
    return {{{at(first), rows, (first.n * kBits + 7) / 8, packed_row_bytes(kBits, cols_)}}};
  }
  TritLayout trit_layout() const {
    return {.kind = TritLayout::Kind::kPackedCodes,
            .bytes = codes_.bytes().data(),
            .cols = cols_,
            .threshold = kThreshold,
            .bits = kBits,
            .max_code = kMaxCode};
  }
  void decode_value(const Block& block, float* out) const {
    std::array<std::int8_t, kBlock> codes;
    unpack(block, codes.data());
    kernels().codecs.latent_to_float(out, codes.data(), kThreshold, block.n);
  }

  void decode_master(const Block& block, float* out) const {
    std::array<std::int8_t, kBlock> codes;
    unpack(block, codes.data());
    for (std::int64_t i = 0; i < block.n; ++i) {
      out[i] = static_cast<float>(codes[static_cast<std::size_t>(i)]) * (1.0f / kLevels);
    }
  }

  // Writes the nearest level, whatever the rounding of updates is: writing is not an update.
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::array<std::int16_t, kBlock> levels;
    kernels().updates.quantize_levels(levels.data(), master,
                                      {-static_cast<float>(kLevels), kMaxCode, nullptr}, block.n);
    std::array<std::int8_t, kBlock> codes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.n); ++i) {
      codes[i] = static_cast<std::int8_t>(levels[i]);
    }
    pack(block, codes.data());
  }

  FlipCounts descend(const BlockUpdate& update) {
    const BlockSeries& series = update.blocks;
    const std::span<const Direction> directions = update.directions;
    const Descent& descent = update.descent;
    double* squares = update.squares;
    const SeriesRounding roundings =
        update_rounding(series, directions.size(), cols_, descent, kLevels, kLevels, rounding_);
    std::array<std::int8_t, kMostBlocksAtOnce * kBlock> codes;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      unpack(series[i], codes.data() + i * kBlock);
    }
    const std::int64_t n = series.first.n;
    const FlipCounts counts = kernels().updates.descend_latent(
        codes.data(), kBlock,
        {directions.data(), roundings.data(), std::ssize(directions), n, squares}, kThreshold,
        hysteresis_);
    for (std::size_t i = 0; i < directions.size(); ++i) pack(series[i], codes.data() + i * kBlock);
    return counts;
  }

 private:
  void pack(const Block& block, const std::int8_t* codes) {
    kernels().codecs.pack_codes(at(block), codes, kBits, kMaxCode, block.n);
  }
  void unpack(const Block& block, std::int8_t* codes) const {
    kernels().codecs.unpack_codes(codes, at(block), kBits, kMaxCode, block.n);
  }
  std::uint8_t* at(const Block& block) const {
    return codes_.as<std::uint8_t>() + packed_offset(kBits, cols_, block);
  }

  PlaneSpec spec_;
  std::int64_t cols_;
  Rounding rounding_;
  int hysteresis_;
  Buffer codes_;
};
static_assert(Format<LatentPacked<6>> && Format<LatentPacked<5>> && Format<LatentPacked<4>>);

}  // namespace tritgrad
