// Layer norm and RMS norm of one row, in the order of our own inference.
#pragma once

#include <vector>

namespace tritgrad {

// Does y = gain (x - mean) / sqrt(var + eps) + bias in place (ops/layer_norm.h).
void layer_norm_row(std::vector<float>& x, const std::vector<float>& gain,
                    const std::vector<float>& bias);
// Does y = gain x / sqrt(mean(x^2) + eps) in place.
void rms_norm_row(std::vector<float>& x, const std::vector<float>& gain);

}  // namespace tritgrad
