#include "ops/add.h"

#include <algorithm>

#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// Writes the gradient dy to that of an addend, or adds it.
void pass_on(const GradientTarget& to, const Tensor& dy) {
  parallel_ranges(dy.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    if (to.fresh) {
      std::copy(dy.data + begin, dy.data + end, to.grad.data + begin);
    } else {
      kernels().reductions.add_scaled(to.grad.data + begin, dy.data + begin, 1.0f, end - begin);
    }
  });
}

}  // namespace

Var add(Tape& tape, const Var& a, const Var& b) {
  check(a.shape() == b.shape(), "add: a has shape ", a.shape().str(), " but b has shape ",
        b.shape().str(), "; equal shapes are needed");
  const Var y = tape.variable(a.shape(), a.wants_grad() || b.wants_grad());
  parallel_ranges(y.value.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y.value.data[i] = a.value.data[i] + b.value.data[i];
  });
  if (!y.wants_grad()) return y;
  tape.record(y, {}, {}, [&tape, a, b, y] {
    const Tensor dy = tape.grad_of(y);
    // b first: where a takes the memory of dy over, nothing is left to be done.
    if (b.wants_grad()) pass_on(tape.target(b), dy);
    if (!a.wants_grad()) return;
    const GradientTarget da = tape.target_in_place(a, y);
    if (!da.fresh) pass_on(da, dy);
  });
  return y;
}

}  // namespace tritgrad
