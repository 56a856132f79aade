// shared4, shared8, shared16: packed trits, and one accumulator for 4, 8 or 16 weights; 0.45, 0.325
// or 0.2625 bytes.
//
// The value is the bare trit T; the bytes are those of the plane `trits` of ternary
// (engine/formats/ternary.h). Every k neighbours of a row share one byte, an accumulator and the
// number of the weight that it is for (engine/shared_accumulator.h). A row's last group may be
// shorter; 320 is a multiple of k, so no group crosses a block.
//
//              L (the largest |A|)    K = 2 L + 1, levels of a trit
//     shared4           31                  63
//     shared8           15                  31
//     shared16           7                  15
//
// The master of the weight that has the accumulator is T + A / K, that of the others their trit: a
// weight flips where its master would be nearer to the next trit, and what is left of the step then
// is dropped.
#pragma once

#include <algorithm>
#include <array>

#include "engine/descend.h"
#include "engine/formats/ternary.h"
#include "engine/prefetch.h"
#include "engine/shared_accumulator.h"

namespace tritgrad {

template <int kSharing>
class Shared {
 public:
  static_assert(kSharing == 4 || kSharing == 8 || kSharing == 16);
  static_assert(kBlock % kSharing == 0);
  static constexpr int kThreshold = shared_threshold(kSharing);
  static constexpr int kLevels = 2 * kThreshold + 1;

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"trits", Dtype::kU8, shape.rows() * Ternary::row_bytes(shape.cols()), value_category,
             true},
            {"accumulator", Dtype::kI8, shape.rows() * groups(shape.cols()), Category::kResiduals,
             false, shape.rows()}};
  }

  Shared(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        trits_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        accumulators_(static_cast<std::size_t>(specs_[1].bytes()), Category::kResiduals) {
    constexpr std::array<std::int8_t, kBlock> zeros{};
    for_each_block(shape, [&](const Block& block) {
      kernels().encode_trits(packed(block), zeros.data(), block.n);
    });
  }

  std::vector<Plane> planes() const {
    return {{specs_[0], trits_.bytes()}, {specs_[1], accumulators_.bytes()}};
  }

  void prefetch(const Block& block, Reading reading) const {
    tritgrad::prefetch(packed(block), (block.n + 4) / 5);
    if (reading == Reading::kMaster) tritgrad::prefetch(accumulators(block), groups(block.n));
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
  void decode_master(const Block& block, float* out) const {
    decode_value(block, out);
    const std::int8_t* bytes = accumulators(block);
    for (std::int64_t first = 0; first < block.n; first += kSharing) {
      const SharedAccumulator state = unpack_shared(bytes[first / kSharing], kSharing);
      if (first + state.owner >= block.n) continue;
      out[first + state.owner] += static_cast<float>(state.accumulator) * (1.0f / kLevels);
    }
  }

  void dead_zone(const Block& block, float* out) const {
    std::fill_n(out, block.n, lost_share(rounding_) / kLevels);
  }

  // The nearest trits, whatever the rounding of updates is: writing is not an update. Nobody has
  // asked for an accumulator yet: whoever got one for what its trit leaves, and had no gradient,
  // would keep it from the others for good.
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::array<std::int16_t, kBlock> levels;
    kernels().quantize_levels(levels.data(), master, {-1.0f, 1, nullptr}, block.n);
    std::array<std::int8_t, kBlock> trits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.n); ++i) {
      trits[i] = static_cast<std::int8_t>(levels[i]);
    }
    kernels().encode_trits(packed(block), trits.data(), block.n);
    std::fill_n(accumulators(block), groups(block.n), std::int8_t{0});
  }

  FlipCounts descend(const Block& block, const Direction& direction, const Descent& descent) {
    const UpdateRounding rounding(block, cols_, descent, kLevels, kThreshold, rounding_);
    std::array<std::int8_t, kBlock> trits;
    decode_trits(block, trits.data());
    const int turn = static_cast<int>(descent.key.step % kSharing);
    const FlipCounts counts = kernels().descend_shared(trits.data(), accumulators(block), direction,
                                                       rounding.get(), kSharing, turn, block.n);
    if (counts.flips > 0) kernels().encode_trits(packed(block), trits.data(), block.n);
    return counts;
  }

 private:
  static std::int64_t groups(std::int64_t cols) { return (cols + kSharing - 1) / kSharing; }

  std::uint8_t* packed(const Block& block) const {
    return trits_.as<std::uint8_t>() + block.row * Ternary::row_bytes(cols_) + block.col / 5;
  }
  std::int8_t* accumulators(const Block& block) const {
    return accumulators_.as<std::int8_t>() + block.row * groups(cols_) + block.col / kSharing;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t cols_;
  Rounding rounding_;
  Buffer trits_;
  Buffer accumulators_;
};
static_assert(Format<Shared<4>> && Format<Shared<8>> && Format<Shared<16>>);

}  // namespace tritgrad
