// A linear layer in integers and the batch norm behind it, as one op.
#pragma once

#include "ops/batch_norm.h"
#include "ops/products/linear.h"
#include "ops/products/quantized.h"

namespace tritgrad {

// quantize(batch_norm(linear(x))) in training, to the bit; gradients, too, and the errors of all.
// The weight is one that is multiplied in integers (in_integers(), ops/products/linear.h).
//
// With one scale a row of weights, at most 256 rows in x and not too few outputs, what lies between
// the product and the rounding goes strip by strip (ops/products/column_blocked.h): a strip that
// the product has made is measured before it leaves the cache, and normalised when it is rounded,
// so what the norm gives never is in memory as floats; in backward a strip passes through all that
// makes int8 of its gradient. Otherwise the ops run one after the other.
QuantizedVar linear_batch_norm(Tape& tape, const QuantizedVar& x, Parameter& weight,
                               Parameter* scale, const BatchNormParameters& norm,
                               Rectify rectify = Rectify::kNo);
// batch_norm(linear(x, ..., compute)) in the same way, of floats, for a norm that something else
// reads than a product in integers. The weight may be any.
Var linear_batch_norm(Tape& tape, const Var& x, Parameter& weight, Parameter* scale,
                      Compute compute, const BatchNormParameters& norm,
                      Rectify rectify = Rectify::kNo);

}  // namespace tritgrad
