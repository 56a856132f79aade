// scalar: one number for a whole tensor, the mean of what is written; 4 bytes in all.
//
// For moments: a second moment of this format is the tensor's mean square. Reading any element
// gives the mean of the last complete pass; writing adds to the mean of the pass under way, which
// counts from refresh() on. Nothing to descend: it is no format of weights.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/format.h"

namespace tritgrad {

class Scalar {
 public:
  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape&,
                                            Category value_category) {
    return {{"mean", Dtype::kF32, 1, value_category, true}};
  }

  Scalar(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        size_(std::max<std::int64_t>(1, shape.size())),
        mean_(static_cast<std::size_t>(spec_.bytes()), value_category),
        sums_(kSlots * sizeof(double), Category::kWorkspace) {}

  std::vector<Plane> planes() const { return {{spec_, mean_.bytes()}}; }

  void decode_value(const Block& block, float* out) const {
    std::fill_n(out, block.n, *mean_.as<float>());
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  void encode(const Block& block, const float* master, const RandomKey&) {
    add_sum(block.slot, kernels().sum(master, block.n));
  }
  void add_sum(std::int64_t slot, double sum) { sums_.as<double>()[slot] += sum; }
  FlipCounts descend(const Block&, const float*, const Descent&) {
    fail("Scalar::descend: one number cannot hold the weights of a tensor");
  }

  void refresh() {
    double* sums = sums_.as<double>();
    double total = 0.0;
    for (std::int64_t slot = 0; slot < kSlots; ++slot) total += std::exchange(sums[slot], 0.0);
    *mean_.as<float>() = static_cast<float>(total / static_cast<double>(size_));
  }

 private:
  PlaneSpec spec_;
  std::int64_t size_;
  Buffer mean_;
  Buffer sums_;  // of the pass under way, by slot
};
static_assert(Format<Scalar>);

}  // namespace tritgrad
