// y = x W^T over any storage.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

struct QuantizedVar;  // ops/products/quantized.h

// How products with a ternary matrix are computed.
enum class Compute { kFp32, kInt8 };
inline const char* compute_name(Compute compute) {
  return compute == Compute::kInt8 ? "int8" : "fp32";
}

// x [n, inputs], weight [outputs, inputs], scale [outputs, groups] or null -> y [n, outputs].
//
// The weight that multiplies is value(weight) * value(scale): for ternary formats a trit times the
// scale of its group of inputs / groups neighbours. Gradients, by the chain rule with the identity
// in place of the rounding (straight through, no mask):
//     d weight = scale * dW,   d scale = sum over the group of trit * dW,   dW = dy^T x.
// kInt8 rounds x and dy to int8 (ops/products/integer_linear.h) where the weight is ternary; other
// weights are multiplied in fp32 either way. Throws Error naming both shapes when they do not fit.
Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* scale = nullptr,
           Compute compute = Compute::kFp32);
// kInt8 of an x that has been rounded already. Throws Error for a weight of which in_integers() is
// false.
Var linear(Tape& tape, const QuantizedVar& x, Parameter& weight, Parameter* scale);

// Whether linear() multiplies in integers: what is asked for, and possible with bare trits only.
bool in_integers(const Parameter& weight, const Parameter* scale, Compute compute);

}  // namespace tritgrad
