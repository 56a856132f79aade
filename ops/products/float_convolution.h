// The three products of a convolution in floats, of images where they lie: what dense_convolution()
// computes, for the op that makes x, y and their gradients.
//
// Each returns whether it did: where it did not, nothing has happened, and patches are to be used.
// They take scratch: for packed weights, all of them at once, and for what a few runs need.
#pragma once

#include "ops/images.h"
#include "ops/products/linear.h"

namespace tritgrad {

// x [images h w, channels], y [images h' w', outputs].
struct FloatConvolution {
  LinearOperands w;
  Patches windows;
  std::int64_t images;

  bool forward(Tape& tape, const Tensor& x, const Tensor& y) const;
  // dx, or what is added to it.
  bool backward_input(Tape& tape, const GradientTarget& dx, const Tensor& dy) const;
  // Adds dW to the gradients of the weight and its scale.
  bool backward_weight(Tape& tape, const Tensor& x, const Tensor& dy) const;
};

}  // namespace tritgrad
