#include "ops/reshape.h"

#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {

Var reshape(Tape& tape, const Var& x, const Shape& shape) {
  check(x.shape().size() == shape.size(), "reshape: x has shape ", x.shape().str(), ", of ",
        x.shape().size(), " elements, but ", shape.str(), " has ", shape.size());
  if (!tape.recording()) {
    Var y = tape.take_over(x);
    y.value.shape = shape;
    return y;
  }
  if (!x.wants_grad()) {
    if (x.note != nullptr) x.note->is_read = true;
    return tape.constant({x.value.data, shape});
  }
  Var y = tape.without_value(shape);
  y.value.data = x.value.data;
  // Both count as read, so that the memory of neither is given to another value.
  tape.record(y, {x, y}, {}, [&tape, x, y] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target_in_place(x, y);
    if (dx.fresh) return;
    parallel_ranges(dy.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
      kernels().reductions.add_scaled(dx.grad.data + begin, dy.data + begin, 1.0f, end - begin);
    });
  });
  return y;
}

}  // namespace tritgrad
