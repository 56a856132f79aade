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
  tape.record(y, {x, y}, {}, [&tape, x, y, derivative] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target_in_place(x, y);
    parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      const float* in = x.value.data;
      const float* out = y.value.data;
      const float* dout = dy.data;
      float* din = dx.grad.data;
      for (std::int64_t i = begin; i < end; ++i) {
        const float share = dout[i] * derivative(in[i], out[i]);
        din[i] = dx.fresh ? share : din[i] + share;
      }
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
  tape.record(y, {x}, {}, [&tape, x, y] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target_in_place(x, y);
    parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      kernels().rectify_gradient(dy.data + begin, x.value.data + begin, end - begin);
      if (dx.fresh) return;
      kernels().add_scaled(dx.grad.data + begin, dy.data + begin, 1.0f, end - begin);
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
