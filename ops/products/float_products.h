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

// ---- for products that are computed elsewhere ----

// Returns the scales of W in scratch, or null when there is no scale parameter.
const float* float_scales(Tape& tape, const LinearOperands& w);
// Returns rows [begin, end) of the multiplying matrix: the stored array itself where it is fp32,
// else decoded into `panel` [(end - begin) x inputs].
const float* decode_panel(const LinearOperands& w, const float* scales, std::int64_t begin,
                          std::int64_t end, float* panel);
// Adds dW [outputs, inputs] to the gradients of the weight and its scale. Each column of x and dy,
// in whatever shape they are, contains what makes a column or a row of dW.
void add_weight_gradient(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& dy,
                         const Tensor& dw);

}  // namespace tritgrad
