// y = x W^T over any storage.
#pragma once

#include <algorithm>

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

// The operands of y = x W^T, for ops that make the products themselves.
struct LinearOperands {
  Parameter* weight;
  Parameter* scale;  // null for formats that need none
  std::int64_t inputs, outputs;
  std::int64_t group_size;  // inputs that share a scale; the last group of a row may be shorter
  std::int64_t groups;      // of one row

  // Calls body(group, first, last) for the stretches of columns [begin, end) that share a scale.
  template <typename Body>
  void for_each_group(std::int64_t begin, std::int64_t end, const Body& body) const {
    for (std::int64_t first = begin; first < end;) {
      const std::int64_t group = first / group_size;
      const std::int64_t last = std::min(end, (group + 1) * group_size);
      body(group, first, last);
      first = last;
    }
  }
};

// Throws Error, which begins with the name of the op, when weight and scale do not fit each other.
LinearOperands linear_operands(const char* op, Parameter& weight, Parameter* scale);

// Throws Error, which begins with the name of the op, unless x has as many columns as the weight.
void check_inputs(const char* op, const Shape& x, const LinearOperands& w);

// Returns the scales of all rows [outputs x groups], in the tape's scratch.
inline float* decode_scales(Tape& tape, const LinearOperands& w) {
  float* scales = tape.allocate_scratch<float>(w.outputs * w.groups);
  w.scale->storage().decode_rows(0, w.outputs, scales);
  return scales;
}

}  // namespace tritgrad
