// fp8: e4m3fn numbers with a bf16 scale for every block of a row; 1.00625 bytes.
//
// One sign bit, 4 exponent bits (bias 7), 3 mantissa bits: up to 448, normal from 2^-6, subnormals
// of 2^-9, no infinity, NaN 0x7F and 0xFF. value = master = number * scale. The scale follows the
// largest magnitude of the block (320 elements, fewer at the end of a row) at every writing, as in
// int8 (engine/formats/integer_group.h): to nearest, the largest element is 448 and encoding what
// was decoded gives the same bytes; stochastically, the scale is rounded up and nothing is clipped.
// An update writes a block only if a master in it changes.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/descend.h"
#include "engine/formats/format.h"
#include "engine/formats/half_precision.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

class Fp8 {
 public:
  static constexpr FormatTraits kTraits{
      .kind = FormatKind::kFp8, .name = "fp8", .has_residual = false};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"value", Dtype::kU8, shape.size(), value_category, true},
            {"scale", Dtype::kBf16, shape.rows() * blocks(shape.cols()), value_category, true}};
  }

  Fp8(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        values_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        scales_(static_cast<std::size_t>(specs_[1].bytes()), value_category) {}

  std::vector<Plane> planes() const {
    return {{specs_[0], values_.bytes()}, {specs_[1], scales_.bytes()}};
  }

  void decode_value(const Block& block, float* out) const {
    kernels().codecs.decode_fp8(out, at(block), *scale(block), block.n);
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  // Rounds as the spec says.
  void encode(const Block& block, const float* master, const RandomKey& key) {
    std::array<std::uint16_t, kBlock> noise;
    const bool stochastic = rounding_ == Rounding::kStochastic;
    if (stochastic) {
      kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols_));
    }
    kernels().codecs.encode_fp8(at(block), scale(block), master,
                                stochastic ? noise.data() : nullptr, block.n);
  }

  // Updates a block whose masters are known.
  void descend_from(const Block& block, const float* before, const float* direction,
                    const Descent& descent) {
    std::array<float, kBlock> after;
    std::copy_n(before, block.n, after.data());
    kernels().updates.descend(after.data(), direction, descent.lr, block.n);
    if (!std::equal(before, before + block.n, after.data())) {
      encode(block, after.data(), descent.key);
    }
  }

 private:
  static std::int64_t blocks(std::int64_t cols) { return (cols + kBlock - 1) / kBlock; }
  std::uint8_t* at(const Block& block) const {
    return values_.as<std::uint8_t>() + block.row * cols_ + block.col;
  }
  std::uint16_t* scale(const Block& block) const {
    return scales_.as<std::uint16_t>() + block.row * blocks(cols_) + block.col / kBlock;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t cols_;
  Rounding rounding_;
  Buffer values_;
  Buffer scales_;
};
static_assert(Format<Fp8>);

}  // namespace tritgrad
