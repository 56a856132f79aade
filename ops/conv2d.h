// Two-dimensional convolution over any storage, by the products of linear().
#pragma once

#include "engine/data/image_shape.h"
#include "engine/tape.h"
#include "ops/products/linear.h"

namespace tritgrad {

// The size of a convolution's windows, size x size pixels; odd.
struct Window {
  std::int64_t size = 3;
};

// Images of one shape, h x w x c: x [n h w, c], weight [outputs, size size c], scale as linear()'s
// -> y [n h w, outputs]. With zeros around the image, stride 1:
//     y[pixel] = W patch(pixel),  patch(pixel) = the window around it, lines from the top, pixels
// of a line from the left, channels of a pixel beside each other.
//
// Patches exist for a few images at a time, forward and again backward. kInt8 rounds x, each image
// by its own absmax / 127, where the weight is ternary, and everything else as linear() does.
// Throws Error naming the shapes when they do not fit.
Var conv2d(Tape& tape, const Var& x, const ImageShape& image, Window window, Parameter& weight,
           Parameter* scale = nullptr, Compute compute = Compute::kFp32);

}  // namespace tritgrad
