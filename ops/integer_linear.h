// y = x W^T with a ternary W, in integers.
//
// All three products of a training step multiply int8 numbers and add in 32 bits:
//
//     forward   x, each row by its own absmax / 127, times trits
//     dx        dy E, each row by its own absmax / 127, times trits (E: the scales of W)
//     dW        dy times the scales of x's rows, each column by its absmax / 127, times x as int8
//
// Integer sums are exact in any order, so the bits depend neither on the instruction set nor on the
// number of threads. W is decoded a block at a time, and dW is a GradientSource, so neither exists
// in memory (unless the gradient is kept, or added to elsewhere).
#pragma once

#include "ops/linear_operands.h"

namespace tritgrad {

// x [n, inputs] -> y [n, outputs]; linear() has checked the operands: the weight holds bare trits.
Var integer_linear(Tape& tape, const Var& x, const LinearOperands& w);

}  // namespace tritgrad
