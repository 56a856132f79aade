#include "models/export/decoded_weights.h"

namespace tritgrad {

std::vector<float> decoded_weights(const InferenceProduct& product) {
  if (product.trits.empty()) return product.weights;
  std::vector<float> weights;
  weights.reserve(product.trits.size());
  for (std::int64_t o = 0; o < product.outputs; ++o) {
    const float* scales = product.scales.data() + o * product.groups();
    for (std::int64_t i = 0; i < product.inputs; ++i) {
      const auto trit = product.trits[weights.size()];
      // A zero is a positive one, however the scale is signed.
      weights.push_back(trit == 0 ? 0.0f : static_cast<float>(trit) * scales[i / product.group]);
    }
  }
  return weights;
}

}  // namespace tritgrad
