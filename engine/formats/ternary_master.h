// ternary_master: an fp32 master whose value is ternary; 4 bytes. The baseline with master weights.
//
// BitNet b1.58 (Ma et al. 2024): gamma = max(mean |W|, 1e-5) over the whole tensor, value = gamma *
// clip(rint(W / gamma), -1, 1), ties to even. gamma is recomputed from the master after every
// update (refresh). Recomputing it from the value instead would shrink it at each step: absmean is
// no fixed point of ternary tensors, which is why formats without a master train their scale.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/formats/format.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"

namespace tritgrad {

class TernaryMaster {
 public:
  static constexpr FormatTraits kTraits{.kind = FormatKind::kTernaryMaster,
                                        .name = "ternary_master",
                                        .is_ternary = true,
                                        .rounds_updates = false,
                                        .has_statistics = true};

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
    kernels().codecs.decode_ternary_master(out, at(block), gamma(), block.n);
  }
  void decode_master(const Block& block, float* out) const { std::copy_n(at(block), block.n, out); }
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::copy_n(master, block.n, at(block));
  }
  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    FlipCounts counts;
    counts.flips = kernels().updates.descend_ternary_master(at(block), direction, descent.lr,
                                                            gamma(), block.n);
    return counts;
  }

  // To be called when all blocks of an update (or of an encoding) are done.
  void refresh() {
    const float* master = master_.as<float>();
    const double sum = parallel_sum(size_, 16384, [&](std::int64_t begin, std::int64_t end) {
      return kernels().reductions.sum_of_magnitudes(master + begin, end - begin);
    });
    const double count = static_cast<double>(std::max<std::int64_t>(size_, 1));
    *gamma_.as<float>() = std::max(static_cast<float>(sum / count), 1e-5f);
  }

 private:
  float gamma() const { return *gamma_.as<float>(); }
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
