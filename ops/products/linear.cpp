#include "ops/products/linear.h"

#include <algorithm>

#include "ops/products/float_products.h"
#include "ops/products/integer_linear.h"

namespace tritgrad {

LinearOperands linear_operands(const char* op, Parameter& weight, Parameter* scale) {
  const std::int64_t inputs = weight.shape().cols();
  const std::int64_t outputs = weight.shape().rows();
  check(inputs > 0 && outputs > 0, op, ": '", weight.name(), "' has shape ", weight.shape().str(),
        "; both axes must have elements");
  const std::int64_t group = weight.storage().spec().group;
  const std::int64_t group_size = group == 0 ? inputs : std::min<std::int64_t>(group, inputs);
  const LinearOperands w{&weight, scale,      inputs,
                         outputs, group_size, (inputs + group_size - 1) / group_size};
  check(scale == nullptr || scale->shape() == Shape{outputs, w.groups}, op, ": '", weight.name(),
        "' has shape ", weight.shape().str(), " but its scale has shape ",
        scale == nullptr ? "" : scale->shape().str(), "; expected ",
        Shape{outputs, w.groups}.str());
  return w;
}

void check_inputs(const char* op, const Shape& x, const LinearOperands& w) {
  check(x.cols() == w.inputs, op, ": x has shape ", x.str(), " but '", w.weight->name(),
        "' has shape ", w.weight->shape().str(), "; the last axes must be equal");
}

bool in_integers(const Parameter& weight, const Parameter* scale, Compute compute) {
  return compute == Compute::kInt8 && scale != nullptr &&
         weight.storage().spec().traits().holds_trits;
}

Var linear(Tape& tape, const QuantizedVar& x, Parameter& weight, Parameter* scale) {
  const LinearOperands w = linear_operands("linear", weight, scale);
  check_inputs("linear", x.shape(), w);
  check(in_integers(weight, scale, Compute::kInt8), "linear: x is rounded to int8, but '",
        weight.name(), "' is not multiplied in integers; give x in floats");
  return integer_linear(tape, x, w);
}

Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* scale, Compute compute) {
  const LinearOperands w = linear_operands("linear", weight, scale);
  check_inputs("linear", x.shape(), w);
  if (in_integers(weight, scale, compute)) {
    const QuantizedRows rows = allocate_rows(tape, x.value.rows(), w.inputs, tape.recording());
    quantize_rows(rows, x.value, nullptr);
    return integer_linear(tape, {x, rows}, w);
  }
  const Var y = tape.variable({x.value.rows(), w.outputs});
  float_forward(tape, w, x.value, y.value);
  tape.scratch_reset();
  tape.record(y, {x}, {&weight, scale}, [&tape, w, x, y] {
    const Tensor dy = tape.grad_of(y);
    float_backward_weight(tape, w, x.value, dy);
    if (x.wants_grad()) float_backward_input(tape, w, tape.target(x), dy);
  });
  return y;
}

}  // namespace tritgrad
