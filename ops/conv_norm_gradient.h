// The backward pass of conv_norm().
#pragma once

#include "ops/conv_norm_bands.h"

namespace tritgrad {

// Adds to the gradients of weight, scale, gain and bias, and writes that of x, if anybody wants it.
// The gradient of the output is in `levels`, or, where these are without levels, in `floats`.
void conv_norm_backward(Tape& tape, const ConvNorm& c, const ImageLevels& levels,
                        const Tensor& floats);

}  // namespace tritgrad
