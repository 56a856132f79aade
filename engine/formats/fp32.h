// fp32: the value is the master, 4 bytes, nothing is left over.
// Not for a model that should be small; the reference that all other formats are compared with.
#pragma once

#include "engine/formats/format.h"
#include "engine/kernels/updates.h"
#include "engine/memory/prefetch.h"

namespace tritgrad {

class Fp32 {
 public:
  static constexpr FormatTraits kTraits{
      .kind = FormatKind::kFp32, .name = "fp32", .rounds_updates = false, .tells_memory = true};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"value", Dtype::kF32, shape.size(), value_category, true}};
  }

  Fp32(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        value_(static_cast<std::size_t>(spec_.bytes()), value_category) {}

  std::vector<Plane> planes() const { return {{spec_, value_.bytes()}}; }

  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading) const {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
    return {{{at(first), rows, first.n * kBytes, cols_ * kBytes}}};
  }

  // All values as one array: readers need no decoding.
  float* data() const { return value_.as<float>(); }

  void decode_value(const Block& block, float* out) const { std::copy_n(at(block), block.n, out); }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::copy_n(master, block.n, at(block));
  }
  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    kernels().updates.descend(at(block), direction, descent.lr, block.n);
    return {};
  }

 private:
  float* at(const Block& block) const { return data() + block.row * cols_ + block.col; }

  PlaneSpec spec_;
  std::int64_t cols_;
  Buffer value_;
};
static_assert(Format<Fp32>);

}  // namespace tritgrad
