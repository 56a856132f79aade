// y = x W^T with a ternary W, in integers.
//
// All three products of a training step multiply int8 numbers and add in 32 bits:
//
//     forward   x, each row by its own absmax / 127, times trits
//     dx        dy E, each row by its own absmax / 127, times trits (E: the scales of W)
//     dW        dy times the scales of x's rows, each column by its absmax / 127, times x as int8
//
// Integer sums are exact in any order, so the bits depend neither on the instruction set nor on the
// number of threads. W is decoded a block at a time, so it never exists in memory; neither does dW
// (ops/products/integer_weight_gradient.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include "ops/products/linear.h"
#include "ops/products/quantized.h"

namespace tritgrad {

// x [n, inputs] -> y [n, outputs]; linear() has checked the operands: the weight holds bare trits.
Var integer_linear(Tape& tape, const QuantizedVar& x, const LinearOperands& w);

// The products one by one, for ops that make the rows of x as they need them. All take scratch.
//
// The most rows of x in one call: dW's sums of products of a byte and a code then fit 32 bits.
inline constexpr std::int64_t kMostIntegerRows = 65'536;
static_assert(255 * 127 * kMostIntegerRows <= std::numeric_limits<std::int32_t>::max());

// Throws Error, which begins with the name of the op, when sums over an axis could overflow.
void check_integers(const char* op, const LinearOperands& w);
// Writes y [n, outputs] of x [n, inputs].
void integer_forward(Tape& tape, const LinearOperands& w, const QuantizedRows& x, const Tensor& y);
// Writes y in strips, for so many rows at most. done(first, n) is called when columns [first, first
// + n) of y are there, one strip, on the thread that made them; what it costs of each element
// counts as `done_cost` products of bytes.
inline constexpr std::int64_t kMostStripRows = 256;
void integer_forward(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                     const ColumnBlocked& y, std::int64_t done_cost,
                     const std::function<void(std::int64_t first, std::int64_t n)>& done);

// The place of dx.
struct InputGradient {
  ColumnBlocked place;
  bool fresh;  // nothing is there yet: written, otherwise added to
};
// Returns the place of the gradient of x, which wants one.
InputGradient input_gradient(Tape& tape, const QuantizedVar& x);
// dx = (dy E) T, or that is added to it.
void integer_backward_input(Tape& tape, const LinearOperands& w, const InputGradient& dx,
                            const ColumnBlocked& dy);

}  // namespace tritgrad
