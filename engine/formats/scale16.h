// scale16: a positive scale whose value is exact in fp16 and whose master is fp32; 4 bytes.
//
// Other programs' ternary formats store fp16 scales. The forward pass reads the rounded scale
// already in training, so a model in such a format computes what the trained one did. Masters are
// kept in [2^-14, 65504], the normal range of fp16: a scale never reaches zero, where its sign and
// its meaning for the trits beside it would be lost.
#pragma once

#include <algorithm>

#include "engine/formats/format.h"
#include "engine/formats/half_precision.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

class Scale16 {
 public:
  static constexpr float kMin = 0x1p-14f;
  static constexpr float kMax = 65504.0f;
  static constexpr FormatTraits kTraits{.kind = FormatKind::kScale16,
                                        .name = "scale16",
                                        .rounds_updates = false,
                                        .long_blocks = LongBlocks::kAlways,
                                        .joins_rows = true,
                                        .descends_by_encoding = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"master", Dtype::kF32, shape.size(), value_category, true}};
  }

  Scale16(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        master_(static_cast<std::size_t>(spec_.bytes()), value_category) {
    std::fill_n(master_.as<float>(), shape.size(), 1.0f);
  }

  std::vector<Plane> planes() const { return {{spec_, master_.bytes()}}; }

  void decode_value(const Block& block, float* out) const {
    const float* master = at(block);
    for (std::int64_t i = 0; i < block.n; ++i) out[i] = round_to_half(master[i]);
  }
  void decode_master(const Block& block, float* out) const { std::copy_n(at(block), block.n, out); }
  void encode(const Block& block, const float* master, const RandomKey&) {
    float* stored = at(block);
    for (std::int64_t i = 0; i < block.n; ++i) stored[i] = std::clamp(master[i], kMin, kMax);
  }
  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    float* stored = at(block);
    kernels().updates.descend(stored, direction, descent.lr, block.n);
    for (std::int64_t i = 0; i < block.n; ++i) stored[i] = std::clamp(stored[i], kMin, kMax);
    return {};
  }

 private:
  float* at(const Block& block) const {
    return master_.as<float>() + block.row * cols_ + block.col;
  }

  PlaneSpec spec_;
  std::int64_t cols_;
  Buffer master_;
};
static_assert(Format<Scale16>);

}  // namespace tritgrad
