// Two-dimensional convolution over any storage, by the products of linear().
#pragma once

#include "engine/data/image_shape.h"
#include "engine/tape.h"
#include "ops/products/linear.h"

namespace tritgrad {

// The size of a convolution's windows, size x size pixels, odd; and how many pixels they are apart.
struct Window {
  std::int64_t size = 3;
  std::int64_t stride = 1;
};

// Returns the shape that conv2d() makes of an image's: with stride s (h + s - 1) / s lines, those
// whose windows lie around lines 0, s, 2 s, ..., and as many columns.
inline ImageShape convolved(const ImageShape& image, Window window, std::int64_t outputs) {
  return {(image.height + window.stride - 1) / window.stride,
          (image.width + window.stride - 1) / window.stride, outputs};
}

// Images of one shape, h x w x c: x [n h w, c], weight [outputs, size size c], scale as linear()'s
// -> y [n h' w', outputs], h' x w' as convolved() says. With zeros around the image:
//     y[pixel] = W patch(pixel),  patch(pixel) = the window around it, lines from the top, pixels
// of a line from the left, channels of a pixel beside each other.
//
// In floats oneDNN reads images where they lie, as far as it is there and faster
// (ops/products/dense_convolution.h). Otherwise patches exist for a few images at a time, forward
// and again backward. kInt8 rounds x, each image by its own absmax / 127, where the weight is
// ternary, and everything else as linear() does.
// Throws Error naming the shapes when they do not fit.
Var conv2d(Tape& tape, const Var& x, const ImageShape& image, Window window, Parameter& weight,
           Parameter* scale = nullptr, Compute compute = Compute::kFp32);

}  // namespace tritgrad
