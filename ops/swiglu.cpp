#include "ops/swiglu.h"

#include <algorithm>
#include <array>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// A stretch of dgate, which lies on the stack until it is clear where it goes.
constexpr std::int64_t kStretch = 1024;

// dy becomes dup; dgate, unless null, is written, or added to.
void swiglu_gradients(const float* gate, const float* up, float* dy, const GradientTarget& dgate,
                      std::int64_t begin, std::int64_t n) {
  std::array<float, kStretch> made;
  const bool direct = dgate.grad && dgate.fresh;
  float* out = direct ? dgate.grad.data + begin : made.data();
  kernels().layers.swiglu_gradient(out, dy + begin, gate + begin, up + begin, n);
  if (!dgate.grad || direct) return;
  kernels().reductions.add_scaled(dgate.grad.data + begin, out, 1.0f, n);
}

}  // namespace

Var swiglu(Tape& tape, const Var& gate, const Var& up) {
  check(gate.shape() == up.shape(), "swiglu: gate has shape ", gate.shape().str(),
        " but up has shape ", up.shape().str(), "; equal shapes are needed");
  const Var y = tape.variable(gate.shape(), gate.wants_grad() || up.wants_grad());
  parallel_ranges(y.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    kernels().layers.swiglu(y.value.data + begin, gate.value.data + begin, up.value.data + begin,
                            end - begin);
  });
  if (!y.wants_grad()) return y;
  tape.record(y, {gate, up}, {}, [&tape, gate, up, y] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dup =
        up.wants_grad() ? tape.target_in_place(up, y) : GradientTarget{{}, true};
    const GradientTarget dgate = gate.wants_grad() ? tape.target(gate) : GradientTarget{{}, true};
    parallel_ranges(dy.size(), kStretch, [&](std::int64_t begin, std::int64_t end) {
      swiglu_gradients(gate.value.data, up.value.data, dy.data, dgate, begin, end - begin);
      if (dup.fresh) return;
      kernels().reductions.add_scaled(dup.grad.data + begin, dy.data + begin, 1.0f, end - begin);
    });
  });
  return y;
}

}  // namespace tritgrad
