#include "ops/bias.h"

#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {

Var add_bias(Tape& tape, const Var& x, Parameter& bias) {
  check(bias.shape().size() == x.value.cols(), "add_bias: x has shape ", x.shape().str(), " but '",
        bias.name(), "' has shape ", bias.shape().str(), "; one element per column is needed");
  const Tensor b = tape.tensor(bias.shape());
  bias.storage().decode_rows(0, bias.shape().rows(), b.data);

  const Var y = tape.variable(x.shape());
  for_each_row(x.value, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.value.cols(); ++j)
      y.value.row(i)[j] = x.value.row(i)[j] + b.data[j];
  });
  tape.record(y, {}, {&bias}, [&tape, &bias, x, y] {
    const Tensor dy = tape.grad_of(y);
    const Tensor db = tape.gradient(bias);
    for_each_column_piece(dy, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < dy.rows(); ++i) {
        for (std::int64_t j = begin; j < end; ++j) db.data[j] += dy.row(i)[j];
      }
    });
    if (!x.wants_grad()) return;
    const auto [dx, fresh] = tape.target_in_place(x, y);
    if (fresh) return;
    for_each_row(dy, [&, to = dx](std::int64_t i) {
      kernels().reductions.add_scaled(to.row(i), dy.row(i), 1.0f, dy.cols());
    });
  });
  return y;
}

}  // namespace tritgrad
