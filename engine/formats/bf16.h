// bf16: 8 exponent bits as in fp32, 8 significant bits; 2 bytes.
//
// Represents the fp32 range with a relative error of at most 2^-8 (nearest). The value is the
// master: there is no residual. An update smaller than half a unit in the last place is lost when
// rounding to nearest, and moves the weight with the right probability when rounding
// stochastically.
#pragma once

#include <array>

#include "engine/formats/descend.h"

namespace tritgrad {

class Bf16 {
 public:
  static constexpr FormatTraits kTraits{.kind = FormatKind::kBf16,
                                        .name = "bf16",
                                        .has_residual = false,
                                        .long_blocks = LongBlocks::kToNearest,
                                        .joins_rows = true,
                                        .descends_by_encoding = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"value", Dtype::kBf16, shape.size(), value_category, true}};
  }

  Bf16(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        value_(static_cast<std::size_t>(spec_.bytes()), value_category) {}

  std::vector<Plane> planes() const { return {{spec_, value_.bytes()}}; }

  void decode_value(const Block& block, float* out) const {
    kernels().codecs.bf16_to_float(out, at(block), block.n);
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  void encode(const Block& block, const float* master, const RandomKey& key) {
    if (rounding_ == Rounding::kNearest) {
      kernels().codecs.float_to_bf16(at(block), master, nullptr, block.n);
      return;
    }
    std::array<std::uint16_t, kBlock> noise;
    kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols_));
    kernels().codecs.float_to_bf16(at(block), master, noise.data(), block.n);
  }

  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    descend_master(*this, block, direction, descent);
    return {};
  }

 private:
  std::uint16_t* at(const Block& block) const {
    return value_.as<std::uint16_t>() + block.row * cols_ + block.col;
  }

  PlaneSpec spec_;
  std::int64_t cols_;
  Rounding rounding_;
  Buffer value_;
};
static_assert(Format<Bf16>);

}  // namespace tritgrad
