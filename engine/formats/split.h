// split24, split32: bf16 and a correction of 8 or 16 bits; 3 or 4 bytes.
//
// The weights of FlashOptim (arXiv 2602.23349). The value is a bf16 number, all that inference
// needs; the master lies within half a unit in the last place of it, and the correction says where:
//
//     master = value + correction / N * half the way to the next bf16 number    N = 127 or 32767
//
// on the side that the correction's sign says: towards zero from a power of two, half as far. (The
// paper counts in half units of the value on both sides, which leaves half of the codes unused
// there.) So the bits of masters form an even grid, which is all that the kernels know.
//
// A normal master errs by at most 2^-9 / 127 = 1.54e-5 (split24) and 2^-24 * 2 = 1.2e-7 (split32)
// of itself; nearly all of split32's are exact. The value is always the nearest bf16 number (ties
// to even) of the master, whatever the rounding. It is found from the master as stored, not as
// given: only a number closer to a tie than half a step of the correction can tell the difference,
// and without it the pair would not survive being read and written back.
//
// Rounding: split24 rounds the correction to nearest or stochastically, as the spec says, so that
// an update below 1/254 of that way still moves the master with the right probability. split32
// always rounds to nearest: its step is that of fp32, where smaller updates do not exist.
//
// Range: that of bf16, subnormals included; beyond the largest master, 3.396e38, numbers saturate.
// Infinities and NaN are kept by the value. -0 stays -0.
#pragma once

#include <array>
#include <type_traits>

#include "engine/formats/descend.h"

namespace tritgrad {

template <typename Correction>
class SplitNumber {
  static_assert(std::is_same_v<Correction, std::int8_t> ||
                std::is_same_v<Correction, std::int16_t>);
  static constexpr bool kIsWide = sizeof(Correction) == 2;

 public:
  static constexpr std::size_t kValuePlane = 0, kCorrectionPlane = 1;
  static constexpr FormatTraits kTraits{
      .kind = kIsWide ? FormatKind::kSplit32 : FormatKind::kSplit24,
      .name = kIsWide ? "split32" : "split24",
      .rounds_updates = !kIsWide,
      .long_blocks = kIsWide ? LongBlocks::kAlways : LongBlocks::kToNearest,
      .descends_by_encoding = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"value", Dtype::kBf16, shape.size(), value_category, true},
            {"correction", kIsWide ? Dtype::kI16 : Dtype::kI8, shape.size(), Category::kResiduals,
             false}};
  }

  SplitNumber(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        cols_(shape.cols()),
        stochastic_(!kIsWide && spec.rounding == Rounding::kStochastic),
        value_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        correction_(static_cast<std::size_t>(specs_[1].bytes()), Category::kResiduals) {}

  std::vector<Plane> planes() const {
    return {{specs_[0], value_.bytes()}, {specs_[1], correction_.bytes()}};
  }

  void decode_value(const Block& block, float* out) const {
    kernels().codecs.bf16_to_float(out, value_at(block), block.n);
  }

  void decode_master(const Block& block, float* out) const {
    if constexpr (kIsWide) {
      kernels().codecs.decode_split16(out, value_at(block), correction_at(block), block.n);
    } else {
      kernels().codecs.decode_split8(out, value_at(block), correction_at(block), block.n);
    }
  }

  void encode(const Block& block, const float* master, const RandomKey& key) {
    if constexpr (kIsWide) {
      kernels().codecs.encode_split16(value_at(block), correction_at(block), master, block.n);
    } else {
      std::array<std::uint16_t, kBlock> noise;
      if (stochastic_) {
        kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols_));
      }
      kernels().codecs.encode_split8(value_at(block), correction_at(block), master,
                                     stochastic_ ? noise.data() : nullptr, block.n);
    }
  }

  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    descend_master(*this, block, direction, descent);
    return {};
  }

 private:
  std::uint16_t* value_at(const Block& block) const {
    return value_.as<std::uint16_t>() + block.row * cols_ + block.col;
  }
  Correction* correction_at(const Block& block) const {
    return correction_.as<Correction>() + block.row * cols_ + block.col;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t cols_;
  bool stochastic_;
  Buffer value_;
  Buffer correction_;
};

using Split24 = SplitNumber<std::int8_t>;
using Split32 = SplitNumber<std::int16_t>;
static_assert(Format<Split24>);
static_assert(Format<Split32>);

}  // namespace tritgrad
