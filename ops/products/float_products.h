// The three products of y = x W^T in floats, for the ops that make x, y and their gradients.
//
// They take scratch, for a panel of decoded rows of W at a time among others.
#pragma once

#include "ops/products/linear.h"

namespace tritgrad {

// y [n, outputs] = x W^T of x [n, inputs].
void float_forward(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& y);
// dx = dy W, or added to it.
void float_backward_input(Tape& tape, const LinearOperands& w, const GradientTarget& dx,
                          const Tensor& dy);
// Adds dW = dy^T x to the gradients of the weight and its scale.
void float_backward_weight(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& dy);

}  // namespace tritgrad
