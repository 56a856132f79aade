#include "ops/layer_norm.h"

#include <cmath>

#include "ops/columns.h"

namespace tritgrad {
namespace {

// Both norms are z = (x - mean) * inverse_std, y = gain * z (+ bias); RMSNorm has mean = 0.
struct RowStatistics {
  float* mean;
  float* inverse_std;

  float z(const Tensor& x, std::int64_t i, std::int64_t j) const {
    return (x.row(i)[j] - mean[i]) * inverse_std[i];
  }
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
    double sum = 0.0;
    for (std::int64_t j = 0; centered && j < x.cols(); ++j) sum += static_cast<double>(x.row(i)[j]);
    const double mean = sum / n;
    double squares = 0.0;
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      const double c = static_cast<double>(x.row(i)[j]) - mean;
      squares += c * c;
    }
    rows.mean[i] = static_cast<float>(mean);
    rows.inverse_std[i] =
        static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(eps)));
  });
}

// dx = inverse_std * (dz - [centered] mean(dz) - z * mean(dz * z)) with dz = gain * dy, row by row.
void backward_input(const Var& x, const GradientTarget& dx, const Tensor& dy, const float* gain,
                    const RowStatistics& rows, bool centered) {
  const std::int64_t features = x.value.cols();
  for_each_row(x.value, [&](std::int64_t i) {
    double sum_dz = 0.0;
    double sum_dz_z = 0.0;
    for (std::int64_t j = 0; j < features; ++j) {
      const double dz = static_cast<double>(gain[j] * dy.row(i)[j]);
      sum_dz += dz;
      sum_dz_z += dz * static_cast<double>(rows.z(x.value, i, j));
    }
    const double n = static_cast<double>(features);
    const float mean_dz = centered ? static_cast<float>(sum_dz / n) : 0.0f;
    const float mean_dz_z = static_cast<float>(sum_dz_z / n);
    for (std::int64_t j = 0; j < features; ++j) {
      const float dz = gain[j] * dy.row(i)[j];
      const float share = rows.inverse_std[i] * (dz - mean_dz - rows.z(x.value, i, j) * mean_dz_z);
      float& to = dx.grad.row(i)[j];
      to = dx.fresh ? share : to + share;
    }
  });
}

void backward_parameters(const Var& x, const Tensor& dy, const RowStatistics& rows,
                         const Tensor& dgain, const Tensor& dbias) {
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < x.value.rows(); ++i) {
      for (std::int64_t j = begin; j < end; ++j) {
        dgain.data[j] += dy.row(i)[j] * rows.z(x.value, i, j);
        if (dbias) dbias.data[j] += dy.row(i)[j];
      }
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
    for (std::int64_t j = 0; j < x.value.cols(); ++j) {
      y.value.row(i)[j] = rows.z(x.value, i, j) * g[j] + (b == nullptr ? 0.0f : b[j]);
    }
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
