// scalar: one number for a whole tensor, the mean of what is written; 4 bytes, and 1 KiB of
// workspace for the sums of the pass under way.
//
// For moments: a second moment of this format is the tensor's mean square. Reading any element
// gives the mean of the last complete pass; writing adds to the mean of the pass under way, which
// counts from refresh() on. Nothing to descend: it is no format of weights.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/formats/format.h"

namespace tritgrad {

class Scalar {
 public:
  static constexpr FormatTraits kTraits{
      .kind = FormatKind::kScalar, .name = "scalar", .has_statistics = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape&,
                                            Category value_category) {
    return {{"mean", Dtype::kF32, 1, value_category, true}};
  }

  Scalar(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        mean_(static_cast<std::size_t>(spec_.bytes()), value_category),
        sums_(kSlots * sizeof(Sum), Category::kWorkspace) {}

  std::vector<Plane> planes() const { return {{spec_, mean_.bytes()}}; }

  void decode_value(const Block& block, float* out) const {
    std::fill_n(out, block.n, *mean_.as<float>());
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  void encode(const Block& block, const float* master, const RandomKey&) {
    add_sum(block.slot, kernels().reductions.sum(master, block.n), block.n);
  }
  void add_sum(std::int64_t slot, double sum, std::int64_t n) {
    sums_.as<Sum>()[slot].total += sum;
    sums_.as<Sum>()[slot].elements += n;
  }
  FlipCounts descend(const Block&, const float*, const Descent&) {
    fail("Scalar::descend: one number cannot hold the weights of a tensor");
  }

  void refresh() {
    Sum sum;
    for (std::int64_t slot = 0; slot < kSlots; ++slot) {
      const Sum part = std::exchange(sums_.as<Sum>()[slot], {});
      sum.total += part.total;
      sum.elements += part.elements;
    }
    if (sum.elements == 0) return;
    *mean_.as<float>() = static_cast<float>(sum.total / static_cast<double>(sum.elements));
  }

 private:
  struct Sum {
    double total = 0.0;
    std::int64_t elements = 0;
  };

  PlaneSpec spec_;
  Buffer mean_;
  Buffer sums_;  // of the pass under way, by slot
};
static_assert(Format<Scalar>);

}  // namespace tritgrad
