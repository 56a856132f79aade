// The operands of y = x W^T, common to its computation in floats and in integers.
#pragma once

#include "engine/tape.h"
#include "ops/products/linear.h"

namespace tritgrad {

struct LinearOperands {
  Parameter* weight;
  Parameter* scale;  // null for formats that need none
  std::int64_t inputs, outputs;
  std::int64_t group_size;  // inputs that share a scale; the last group of a row may be shorter
  std::int64_t groups;      // of one row
};

// Throws Error, which begins with the name of the op, when weight and scale do not fit each other.
LinearOperands linear_operands(const char* op, Parameter& weight, Parameter* scale);

// Throws Error, which begins with the name of the op, unless x has as many columns as the weight.
void check_inputs(const char* op, const Shape& x, const LinearOperands& w);

// Scales of all rows [outputs x groups], in the tape's scratch.
inline float* decode_scales(Tape& tape, const LinearOperands& w) {
  float* scales = tape.allocate_scratch<float>(w.outputs * w.groups);
  w.scale->storage().decode_rows(0, w.outputs, scales);
  return scales;
}

}  // namespace tritgrad
