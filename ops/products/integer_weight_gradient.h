// dW and d scale of y = x W^T with a ternary W, in integers: the third product beside those of
// ops/products/integer_linear.h, made when it is read.
#pragma once

#include "ops/products/linear.h"
#include "ops/products/quantized.h"

namespace tritgrad {

// Gives dW and d scale to the weight and its scale. The whole gradient of a step is offered as a
// LazyGradient, which needs the scratch until on_ready has returned; a part is added up in
// memory.
enum class Share { kWhole, kPart };
void integer_backward_weight(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                             const Tensor& y, const Tensor& dy, Share share);
// Gives them where dy has been rounded already: each row times the scale of x's, then columns by
// their absmax. dy_y are the sums of dy y down the columns, of which d scale is made; null where W
// has scales of groups.
void integer_backward_weight(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                             const QuantizedRows& dy, const double* dy_y, Share share);

}  // namespace tritgrad
