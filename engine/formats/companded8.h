// companded8: signed 8-bit codes, finer towards zero, under a scale per group; 1.0625 bytes.
//
// The momentum of FlashOptim (arXiv 2602.23349). Groups of 32 neighbouring elements of a row share
// a scale s of 16 bits, their largest magnitude; the last group of a row may be shorter. A block is
// ten groups, so no group crosses one.
//
//     code c in [-127, 127], z = c / 127:   value = master = s z / (2 - |z|)
//
// The smallest magnitude above zero is s / 253 (127 equal steps would give s / 127); neighbours
// near s are s / 64 apart. Scales have 8 bits of exponent and 8 of mantissa, those of an fp32
// number below its sign: fp16 scales would lose groups of 1e-20.
//
// Rounding to nearest rounds the code, and the scale is rounded to nearest too:
// a scale that was always rounded up could never shrink again where a step takes less than 2^-9 of
// it. Stochastic rounding chooses between the neighbours by position, and the scale between the
// two around it, so that every element keeps its mean, the largest included. Either
// way the largest element has the top code, so that encoding what was decoded changes no byte.
//
// A group of zeros has scale 0. A group that holds an infinity or a NaN becomes NaN as a whole:
// its scale does. Beyond the largest scale, 3.396e38, magnitudes saturate.
#pragma once

#include <array>
#include <type_traits>

#include "engine/formats/descend.h"

namespace tritgrad {

// Root8, below, has codes without a sign.
template <typename Code>
class Companded {
  static constexpr bool kSigned = std::is_same_v<Code, std::int8_t>;
  static_assert(kSigned || std::is_same_v<Code, std::uint8_t>);
  static_assert(kBlock % kCompandedGroup == 0);
  static constexpr std::int64_t kGroupsPerBlock = kBlock / kCompandedGroup;

 public:
  static constexpr std::size_t kCodePlane = 0, kScalePlane = 1;
  static constexpr FormatTraits kTraits{
      .kind = kSigned ? FormatKind::kCompanded8 : FormatKind::kRoot8,
      .name = kSigned ? "companded8" : "root8",
      .long_blocks = LongBlocks::kToNearest,
      .descends_by_encoding = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"code", kSigned ? Dtype::kI8 : Dtype::kU8, shape.size(), value_category, true},
            {"scale", Dtype::kU16, shape.rows() * groups_per_row(shape), value_category, true}};
  }

  Companded(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        cols_(shape.cols()),
        groups_per_row_(groups_per_row(shape)),
        rounding_(spec.rounding),
        codes_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        scales_(static_cast<std::size_t>(specs_[1].bytes()), value_category) {}

  std::vector<Plane> planes() const {
    return {{specs_[0], codes_.bytes()}, {specs_[1], scales_.bytes()}};
  }

  void decode_value(const Block& block, float* out) const {
    if constexpr (kSigned) {
      kernels().codecs.decode_companded(out, codes_at(block), scales_at(block), block.n);
    } else {
      kernels().codecs.decode_root(out, codes_at(block), scales_at(block), block.n);
    }
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  void encode(const Block& block, const float* master, const RandomKey& key) {
    if (rounding_ == Rounding::kNearest) {
      encode(block, master, nullptr, nullptr);
      return;
    }
    std::array<std::uint16_t, kBlock> noise;
    kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols_));
    // Noise of its own: shared noise would tie the rounding of an element to that of its scale.
    // 16 numbers are set apart for the scales of a block, as kernels draw eight at a time.
    RandomKey scale_key = key;
    scale_key.stream ^= random_stream("scale");
    std::array<std::uint16_t, kGroupsPerBlock> scale_noise;
    kernels().codecs.random_u16(scale_noise.data(), kGroupsPerBlock, scale_key,
                                noise_index(block, cols_) / kBlock * 16);
    encode(block, master, noise.data(), scale_noise.data());
  }

  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    descend_master(*this, block, direction, descent);
    return {};
  }

 private:
  static std::int64_t groups_per_row(const Shape& shape) {
    return (shape.cols() + kCompandedGroup - 1) / kCompandedGroup;
  }

  void encode(const Block& block, const float* master, const std::uint16_t* noise,
              const std::uint16_t* scale_noise) {
    if constexpr (kSigned) {
      kernels().codecs.encode_companded(codes_at(block), scales_at(block), master, noise,
                                        scale_noise, block.n);
    } else {
      kernels().codecs.encode_root(codes_at(block), scales_at(block), master, noise, scale_noise,
                                   block.n);
    }
  }

  Code* codes_at(const Block& block) const {
    return codes_.as<Code>() + block.row * cols_ + block.col;
  }
  std::uint16_t* scales_at(const Block& block) const {
    return scales_.as<std::uint16_t>() + block.row * groups_per_row_ + block.col / kCompandedGroup;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t cols_;
  std::int64_t groups_per_row_;
  Rounding rounding_;
  Buffer codes_;
  Buffer scales_;
};

using Companded8 = Companded<std::int8_t>;
static_assert(Format<Companded8>);

// root8: unsigned 8-bit codes of square roots, under a scale per group; 1.0625 bytes.
//
// The variance of FlashOptim (arXiv 2602.23349), for numbers that are never negative. Groups,
// planes and rounding are those of companded8.
//
//     code c in [0, 255], scale s:   value = master = s (c / 255)^2
//
// The smallest number above zero is s / 65025. Only zero has code 0: smaller numbers are rounded up
// to code 1 whatever the rounding, because a variance that vanishes under a momentum that does not
// would turn the quotient of the two into a step of momentum / eps. Too large a variance merely
// shortens a step. Below, their mean is therefore too large, by less than s / 65025.
//
// The scale is the group's largest number, not its root: scales reach as far as fp32, so a square
// costs no range, and rounding has the right mean where it matters. A group that holds a negative
// number becomes NaN as a whole, as it does with an infinity or a NaN.
using Root8 = Companded<std::uint8_t>;
static_assert(Format<Root8>);

}  // namespace tritgrad
