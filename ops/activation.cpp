#include "ops/activation.h"

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

using Loop = void (*)(float* out, const float* x, std::int64_t n);

// The array that the gradient of an activation is made of besides dy.
enum class Reads { kX, kY };

// y = value(x); `gradient` makes dx of dy, with x or y.
Var elementwise(Tape& tape, const Var& x, Loop value, Loop gradient, Reads reads) {
  const Var y = tape.variable(x.shape(), x.wants_grad());
  parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    value(y.value.data + begin, x.value.data + begin, end - begin);
  });
  if (!x.wants_grad()) return y;
  const Var read = reads == Reads::kX ? x : y;
  tape.record(y, {read}, {}, [&tape, x, y, read, gradient] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target_in_place(x, y);
    parallel_ranges(x.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      gradient(dy.data + begin, read.value.data + begin, end - begin);
      if (dx.fresh) return;
      kernels().reductions.add_scaled(dx.grad.data + begin, dy.data + begin, 1.0f, end - begin);
    });
  });
  return y;
}

}  // namespace

Var relu(Tape& tape, const Var& x) {
  return elementwise(tape, x, kernels().layers.relu, kernels().layers.rectify_gradient, Reads::kX);
}

Var squared_relu(Tape& tape, const Var& x) {
  return elementwise(tape, x, kernels().layers.squared_relu, kernels().layers.squared_relu_gradient,
                     Reads::kX);
}

Var tanh(Tape& tape, const Var& x) {
  return elementwise(tape, x, kernels().layers.tanh, kernels().layers.tanh_gradient, Reads::kY);
}

}  // namespace tritgrad
