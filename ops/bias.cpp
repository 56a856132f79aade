#include "ops/bias.h"

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
  tape.record({&bias}, [&tape, &bias, x, y] {
    const Tensor db = tape.gradient(bias);
    for_each_column_piece(y.grad, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < y.grad.rows(); ++i) {
        for (std::int64_t j = begin; j < end; ++j) {
          const float dy = y.grad.row(i)[j];
          db.data[j] += dy;
          if (x.wants_grad()) x.grad.row(i)[j] += dy;
        }
      }
    });
  });
  return y;
}

}  // namespace tritgrad
