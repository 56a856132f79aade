// ternary_master: an fp32 master whose value is ternary; 4 bytes. The baseline with master weights.
//
// BitNet b1.58 (Ma et al. 2024): gamma = max(mean |W|, 1e-5) over the whole tensor, value = gamma *
// clip(rint(W / gamma), -1, 1), ties to even. gamma is recomputed from the master after every
// update (refresh). Recomputing it from the value instead would shrink it at each step: absmean is
// no fixed point of ternary tensors, which is why formats without a master train their scale.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/float_gap.h"
#include "engine/format.h"
#include "engine/kernel_table.h"
#include "engine/parallel.h"

namespace tritgrad {

class TernaryMaster {
 public:
  static constexpr FormatTraits kTraits{.kind = FormatKind::kTernaryMaster,
                                        .name = "ternary_master",
                                        .is_ternary = true,
                                        .rounds_updates = false};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"master", Dtype::kF32, shape.size(), value_category, true},
            {"gamma", Dtype::kF32, 1, Category::kScales, true}};
  }

  TernaryMaster(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        size_(shape.size()),
        cols_(shape.cols()),
        master_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        gamma_(static_cast<std::size_t>(specs_[1].bytes()), Category::kScales) {
    refresh();
  }

  std::vector<Plane> planes() const {
    return {{specs_[0], master_.bytes()}, {specs_[1], gamma_.bytes()}};
  }

  void decode_value(const Block& block, float* out) const {
    const float* master = at(block);
    const float gamma = *gamma_.as<float>();
    for (std::int64_t i = 0; i < block.n; ++i) {
      // clip(rint(x), -1, 1) without a call: ties go to even, so |x| = 1/2 gives 0.
      const float x = master[i] / gamma;
      // 0 * x is 0 for every finite x, and NaN for what has gone wrong.
      out[i] = gamma * static_cast<float>((x > 0.5f) - (x < -0.5f)) + 0.0f * x;
    }
  }
  void decode_master(const Block& block, float* out) const { std::copy_n(at(block), block.n, out); }
  // Of the master: the scale, which every update moves, is renewed by refresh() alone.
  void dead_zone(const Block& block, float* out) const {
    const float* master = at(block);
    for (std::int64_t i = 0; i < block.n; ++i) out[i] = 0.5f * gap_towards_zero(master[i], 0);
  }
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::copy_n(master, block.n, at(block));
  }
  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    std::array<float, kBlock> before;
    decode_value(block, before.data());
    kernels().descend(at(block), direction, descent.lr, block.n);
    std::array<float, kBlock> after;
    decode_value(block, after.data());
    FlipCounts counts;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.n); ++i) {
      counts.flips += before[i] != after[i];
    }
    return counts;
  }

  // To be called when all blocks of an update (or of an encoding) are done.
  void refresh() {
    const float* master = master_.as<float>();
    const double sum = parallel_sum(size_, 16384, [&](std::int64_t begin, std::int64_t end) {
      double partial = 0.0;
      for (std::int64_t i = begin; i < end; ++i) partial += std::abs(master[i]);
      return partial;
    });
    const double count = static_cast<double>(std::max<std::int64_t>(size_, 1));
    *gamma_.as<float>() = std::max(static_cast<float>(sum / count), 1e-5f);
  }

 private:
  float* at(const Block& block) const {
    return master_.as<float>() + block.row * cols_ + block.col;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t size_;
  std::int64_t cols_;
  Buffer master_;
  Buffer gamma_;
};
static_assert(Format<TernaryMaster>);

}  // namespace tritgrad
