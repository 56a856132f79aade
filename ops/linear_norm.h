// A linear layer and the batch norm behind it, as one op.
#pragma once

#include "ops/batch_norm.h"
#include "ops/linear.h"

namespace tritgrad {

// batch_norm(linear(x)) in training, to the bit; gradients, too, and the errors of both.
//
// Where the product is in integers, with one scale a row of weights, at most 256 rows in x and not
// too few outputs, what lies between the two goes strip by strip (ops/strips.h): a strip that the
// product has made passes through the norm, and in backward through all that makes int8 of its
// gradient, before it leaves the cache. Otherwise the two ops run one after the other.
Var linear_batch_norm(Tape& tape, const Var& x, Parameter& weight, Parameter* scale,
                      Compute compute, const BatchNormParameters& norm,
                      Rectify rectify = Rectify::kNo);

}  // namespace tritgrad
