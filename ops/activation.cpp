#include "ops/activation.h"

#include <cmath>

#include "engine/kernel_table.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// value(x) -> y; derivative(x, y) -> dy/dx.
template <typename Value, typename Derivative>
Var elementwise(Tape& tape, const Var& x, Value value, Derivative derivative) {
  const Var y = tape.variable(x.shape(), x.wants_grad());
  parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    const float* in = x.value.data;
    float* out = y.value.data;
    for (std::int64_t i = begin; i < end; ++i) out[i] = value(in[i]);
  });
  if (!x.wants_grad()) return y;
  tape.record({}, [x, y, derivative] {
    parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      const float* in = x.value.data;
      const float* out = y.value.data;
      const float* dout = y.grad.data;
      float* din = x.grad.data;
      for (std::int64_t i = begin; i < end; ++i) din[i] += dout[i] * derivative(in[i], out[i]);
    });
  });
  return y;
}

}  // namespace

Var relu(Tape& tape, const Var& x) {
  const Var y = tape.variable(x.shape(), x.wants_grad());
  parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    kernels().relu(y.value.data + begin, x.value.data + begin, end - begin);
  });
  if (!x.wants_grad()) return y;
  tape.record({}, [x, y] {
    parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      kernels().relu_gradient(x.grad.data + begin, y.grad.data + begin, x.value.data + begin,
                              end - begin);
    });
  });
  return y;
}

Var squared_relu(Tape& tape, const Var& x) {
  return elementwise(
      tape, x, [](float v) { return v > 0.0f ? v * v : 0.0f; },
      [](float v, float) { return v > 0.0f ? 2.0f * v : 0.0f; });
}

Var tanh(Tape& tape, const Var& x) {
  return elementwise(
      tape, x, [](float v) { return std::tanh(v); }, [](float, float y) { return 1.0f - y * y; });
}

}  // namespace tritgrad
