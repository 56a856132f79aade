#include "ops/layer_norm.h"

#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// Both norms are z = (x - mean) * inverse_std, y = gain * z (+ bias); RMSNorm has mean = 0.
struct RowStatistics {
  float* mean;
  float* inverse_std;

  RowNorm row(std::int64_t i, const float* gain) const { return {mean[i], inverse_std[i], gain}; }
};

const float* decode(Tape& tape, const Var& x, const Parameter& parameter, const char* op) {
  check(parameter.shape().size() == x.value.cols(), op, ": x has shape ", x.shape().str(), " but '",
        parameter.name(), "' has shape ", parameter.shape().str());
  const Tensor values = tape.tensor(parameter.shape());
  parameter.storage().decode_rows(0, parameter.shape().rows(), values.data);
  return values.data;
}

void row_statistics(const Tensor& x, bool centered, float eps, const RowStatistics& rows) {
  const double n = static_cast<double>(x.cols());
  for_each_row(x, [&](std::int64_t i) {
    const double mean = centered ? kernels().reductions.sum(x.row(i), x.cols()) / n : 0.0;
    const double squares = kernels().reductions.sum_of_squares_around(x.row(i), mean, x.cols());
    rows.mean[i] = static_cast<float>(mean);
    rows.inverse_std[i] =
        static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(eps)));
  });
}

// dx = inverse_std * (dz - [centered] mean(dz) - z * mean(dz * z)) with dz = gain * dy, row by row.
// It takes the place of dy, and is added to a gradient that x has already.
void backward_input(const Var& x, const GradientTarget& dx, const Tensor& dy, const float* gain,
                    const RowStatistics& rows, bool centered) {
  const std::int64_t features = x.value.cols();
  for_each_row(x.value, [&](std::int64_t i) {
    const RowNorm norm = rows.row(i, gain);
    const RowNormSums sums =
        kernels().layers.row_norm_sums(dy.row(i), x.value.row(i), norm, features);
    const double n = static_cast<double>(features);
    kernels().layers.row_norm_gradient(dy.row(i), x.value.row(i), norm,
                                       centered ? static_cast<float>(sums.dz / n) : 0.0f,
                                       static_cast<float>(sums.dz_z / n), features);
    if (!dx.fresh) kernels().reductions.add_scaled(dx.grad.row(i), dy.row(i), 1.0f, features);
  });
}

void backward_parameters(const Var& x, const Tensor& dy, const RowStatistics& rows,
                         const Tensor& dgain, const Tensor& dbias) {
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < x.value.rows(); ++i) {
      prefetch_after(x.value, i, begin, end - begin);
      prefetch_after(dy, i, begin, end - begin);
      kernels().layers.add_row_norm_gradients(
          dgain.data + begin, dbias ? dbias.data + begin : nullptr, dy.row(i) + begin,
          x.value.row(i) + begin, rows.row(i, nullptr), end - begin);
    }
  });
}

Var normalize_rows(Tape& tape, const Var& x, Parameter& gain, Parameter* bias, float eps,
                   const char* op) {
  const bool centered = bias != nullptr;
  const float* g = decode(tape, x, gain, op);
  const float* b = centered ? decode(tape, x, *bias, op) : nullptr;
  const RowStatistics rows{tape.allocate<float>(x.value.rows()),
                           tape.allocate<float>(x.value.rows())};
  row_statistics(x.value, centered, eps, rows);

  const Var y = tape.variable(x.shape());
  for_each_row(x.value, [&](std::int64_t i) {
    kernels().layers.row_norm(y.value.row(i), x.value.row(i), rows.row(i, g), b, x.value.cols());
  });
  tape.record(y, {x}, {&gain, bias}, [&tape, &gain, bias, x, y, g, rows, centered] {
    const Tensor dy = tape.grad_of(y);
    const Tensor dgain = tape.gradient(gain);
    const Tensor dbias = centered ? tape.gradient(*bias) : Tensor{};
    backward_parameters(x, dy, rows, dgain, dbias);
    if (x.wants_grad()) {
      backward_input(x, tape.target_in_place(x, y), dy, g, rows, centered);
    }
  });
  return y;
}

}  // namespace

Var layer_norm(Tape& tape, const Var& x, Parameter& gain, Parameter& bias) {
  return normalize_rows(tape, x, gain, &bias, kLayerNormEps, "layer_norm");
}

Var rms_norm(Tape& tape, const Var& x, Parameter& gain) {
  return normalize_rows(tape, x, gain, nullptr, kRmsNormEps, "rms_norm");
}

}  // namespace tritgrad
