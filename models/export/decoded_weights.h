// The weights of a product as other programs hold them: floats.
#pragma once

#include <vector>

#include "models/export/inference_network.h"

namespace tritgrad {

// Returns [outputs x inputs]: floats as they are, trits times the scale of their group.
std::vector<float> decoded_weights(const InferenceProduct& product);

}  // namespace tritgrad
