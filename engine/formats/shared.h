// shared4, shared8, shared16: packed trits (engine/formats/packed_trits.h), and one accumulator for
// 4, 8 or 16 weights; 0.45, 0.325 or 0.2625 bytes.
//
// Every k neighbours of a row share one byte, an accumulator and the number of the weight that it
// is for (engine/formats/shared_accumulator.h). A row's last group may be shorter; 320 is a
// multiple of k, so no group crosses a block.
//
//              L (the largest |A|)    K = 2 L + 1, levels of a trit
//     shared4           31                  63
//     shared8           15                  31
//     shared16           7                  15
//
// The value is the bare trit T. The master of the weight that has the accumulator is T + A / K,
// that of the others their trit: a weight flips where its master would be nearer to the next trit,
// and what is left of the step then is dropped.
#pragma once

#include <algorithm>
#include <span>

#include "engine/formats/descend.h"
#include "engine/formats/packed_trits.h"
#include "engine/formats/shared_accumulator.h"

namespace tritgrad {

template <int kSharing>
class Shared : public PackedTrits {
 public:
  static_assert(kSharing == 4 || kSharing == 8 || kSharing == 16);
  static_assert(kBlock % kSharing == 0);
  static constexpr int kThreshold = shared_threshold(kSharing);
  static constexpr int kLevels = 2 * kThreshold + 1;
  static constexpr FormatTraits kTraits{.kind = kSharing == 4   ? FormatKind::kShared4
                                                : kSharing == 8 ? FormatKind::kShared8
                                                                : FormatKind::kShared16,
                                        .name = kSharing == 4   ? "shared4"
                                                : kSharing == 8 ? "shared8"
                                                                : "shared16",
                                        .holds_trits = true,
                                        .levels_per_trit = kLevels,
                                        .reads_directions = true,
                                        .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {trit_plane(shape, value_category),
            {"accumulator", Dtype::kI8, shape.rows() * groups(shape.cols()), Category::kResiduals,
             false, shape.rows()}};
  }

  Shared(const FormatSpec& spec, const Shape& shape, Category value_category)
      : PackedTrits(shape, value_category),
        specs_(plane_specs(spec, shape, value_category)),
        rounding_(spec.rounding),
        accumulators_(static_cast<std::size_t>(specs_[1].bytes()), Category::kResiduals) {}

  std::vector<Plane> planes() const {
    return {{specs_[0], trit_bytes()}, {specs_[1], accumulators_.bytes()}};
  }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading reading) const {
    PrefetchList memory{{trit_memory(first, rows)}};
    if (reading == Reading::kMaster) {
      memory.planes[1] = {accumulators(first), rows, groups(first.n), groups(cols())};
    }
    return memory;
  }
  void decode_master(const Block& block, float* out) const {
    decode_value(block, out);
    const std::int8_t* bytes = accumulators(block);
    for (std::int64_t first = 0; first < block.n; first += kSharing) {
      const SharedAccumulator state = unpack_shared(bytes[first / kSharing], kSharing);
      if (first + state.owner >= block.n) continue;
      out[first + state.owner] += static_cast<float>(state.accumulator) * (1.0f / kLevels);
    }
  }

  // Writes the nearest trits, whatever the rounding of updates is: writing is not an update. Nobody
  // has asked for an accumulator yet: whoever got one for what its trit leaves, and had no
  // gradient, would keep it from the others for good.
  void encode(const Block& block, const float* master, const RandomKey&) {
    encode_rounded(block, master, nullptr);
    std::fill_n(accumulators(block), groups(block.n), std::int8_t{0});
  }

  FlipCounts descend(const BlockUpdate& update) {
    const BlockSeries& series = update.blocks;
    const std::span<const Direction> directions = update.directions;
    const Descent& descent = update.descent;
    double* squares = update.squares;
    const SeriesRounding roundings =
        update_rounding(series, directions.size(), cols(), descent, kLevels, kThreshold, rounding_);
    const DirectionRows rows{directions.data(), roundings.data(), std::ssize(directions),
                             series.first.n, squares};
    const int turn = static_cast<int>(descent.key.step % kSharing);
    return move_trits(series, directions.size(), [&](FlipCounts* counts, std::int8_t* trits) {
      kernels().updates.descend_shared(counts, trits, kBlock, accumulators(series.first),
                                       offset(series[1]) - offset(series.first), rows, kSharing,
                                       turn);
    });
  }

 private:
  static std::int64_t groups(std::int64_t cols) { return (cols + kSharing - 1) / kSharing; }

  std::int64_t offset(const Block& block) const {
    return block.row * groups(cols()) + block.col / kSharing;
  }
  std::int8_t* accumulators(const Block& block) const {
    return accumulators_.as<std::int8_t>() + offset(block);
  }

  std::vector<PlaneSpec> specs_;
  Rounding rounding_;
  Buffer accumulators_;
};
static_assert(Format<Shared<4>> && Format<Shared<8>> && Format<Shared<16>>);

}  // namespace tritgrad
