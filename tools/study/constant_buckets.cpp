#include "tools/study/constant_buckets.h"

#include "engine/formats/bf16_bits.h"

namespace tritgrad {

ConstantBuckets::ConstantBuckets(Optimizer& optimizer) {
  for (const StatePlane& plane : optimizer.state()) {
    if (!plane.name.ends_with("/microadam/bounds")) continue;
    bounds_.emplace_back(reinterpret_cast<const std::uint16_t*>(plane.bytes.data()),
                         plane.bytes.size() / sizeof(std::uint16_t));
  }
  look();
  count_ = {count_.written, count_.zero, 0, 0, 0};
}

void ConstantBuckets::look() {
  for (const auto bounds : bounds_) {
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const float low = float_of_bf16(bounds[i]), high = float_of_bf16(bounds[i + 1]);
      ++count_.written;
      count_.constant += low == high ? 1 : 0;
      count_.zero += low == high && low == 0.0f ? 1 : 0;
    }
  }
}

}  // namespace tritgrad
