#include "ops/batch_norm.h"

#include <array>
#include <cmath>

#include "ops/columns.h"

namespace tritgrad {
namespace {

void check_features(const Var& x, const BatchNormParameters& p) {
  for (const Parameter* parameter : {p.gain, p.bias, p.running_mean, p.running_var}) {
    check(parameter->shape().size() == x.value.cols(), "batch_norm: x has shape ", x.shape().str(),
          " but '", parameter->name(), "' has shape ", parameter->shape().str());
  }
  check(p.running_mean->storage().fp32_data() != nullptr &&
            p.running_var->storage().fp32_data() != nullptr,
        "batch_norm: running statistics must be stored in fp32");
}

const float* decode(Tape& tape, const Parameter& parameter) {
  const Tensor values = tape.tensor(parameter.shape());
  parameter.storage().decode_rows(0, parameter.shape().rows(), values.data);
  return values.data;
}

// Sums down the columns [begin, end), row by row so that memory is read in order; in double.
struct ColumnSums {
  std::array<double, kColumnPiece> values{};

  template <typename Term>  // term(row)(column) -> double
  ColumnSums(std::int64_t rows, std::int64_t begin, std::int64_t end, Term&& term) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto of_row = term(i);
      for (std::int64_t j = begin; j < end; ++j) {
        values[static_cast<std::size_t>(j - begin)] += of_row(j);
      }
    }
  }
};

void update_running(const BatchNormParameters& p, std::int64_t column, std::int64_t n,
                    double batch_mean, double batch_variance) {
  const double unbiased = batch_variance * static_cast<double>(n) / static_cast<double>(n - 1);
  float& mean = p.running_mean->storage().fp32_data()[column];
  float& variance = p.running_var->storage().fp32_data()[column];
  mean += kBatchNormMomentum * (static_cast<float>(batch_mean) - mean);
  variance += kBatchNormMomentum * (static_cast<float>(unbiased) - variance);
}

// What forward leaves for backward; all arrays have one element per column.
struct Columns {
  const float* gain;
  const float* bias;
  float* mean;
  float* inverse_std;

  float z(const float* in, std::int64_t j) const { return (in[j] - mean[j]) * inverse_std[j]; }
};

void forward_columns(const Tensor& x, const Tensor& y, const BatchNormParameters& p,
                     const Columns& c, bool training, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = x.rows();
  const double count = static_cast<double>(n);
  const ColumnSums sum(n, begin, end, [&](std::int64_t i) {
    return [in = x.row(i)](std::int64_t j) { return static_cast<double>(in[j]); };
  });
  std::array<double, kColumnPiece> means;
  for (std::size_t k = 0; k < means.size(); ++k) means[k] = sum.values[k] / count;
  const ColumnSums squares(n, begin, end, [&](std::int64_t i) {
    return [in = x.row(i), &means, begin](std::int64_t j) {
      const double centered =
          static_cast<double>(in[j]) - means[static_cast<std::size_t>(j - begin)];
      return centered * centered;
    };
  });
  for (std::int64_t j = begin; j < end; ++j) {
    const auto k = static_cast<std::size_t>(j - begin);
    const double variance = squares.values[k] / count;
    c.mean[j] = static_cast<float>(means[k]);
    c.inverse_std[j] =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
    if (training) update_running(p, j, n, means[k], variance);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const float* in = x.row(i);
    float* out = y.row(i);
    for (std::int64_t j = begin; j < end; ++j) out[j] = c.z(in, j) * c.gain[j] + c.bias[j];
  }
}

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
void backward_columns(const Var& x, const Var& y, const Columns& c, const Tensor& dgain,
                      const Tensor& dbias, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = x.value.rows();
  const ColumnSums sum_dy(n, begin, end, [&](std::int64_t i) {
    return [dout = y.grad.row(i)](std::int64_t j) { return static_cast<double>(dout[j]); };
  });
  const ColumnSums sum_dy_z(n, begin, end, [&](std::int64_t i) {
    return [dout = y.grad.row(i), in = x.value.row(i), &c](std::int64_t j) {
      return static_cast<double>(dout[j]) * static_cast<double>(c.z(in, j));
    };
  });
  std::array<float, kColumnPiece> mean_dy;
  std::array<float, kColumnPiece> mean_dy_z;
  for (std::int64_t j = begin; j < end; ++j) {
    const auto k = static_cast<std::size_t>(j - begin);
    dbias.data[j] += static_cast<float>(sum_dy.values[k]);
    dgain.data[j] += static_cast<float>(sum_dy_z.values[k]);
    mean_dy[k] = static_cast<float>(sum_dy.values[k] / static_cast<double>(n));
    mean_dy_z[k] = static_cast<float>(sum_dy_z.values[k] / static_cast<double>(n));
  }
  if (!x.wants_grad()) return;
  for (std::int64_t i = 0; i < n; ++i) {
    const float* in = x.value.row(i);
    const float* dout = y.grad.row(i);
    float* din = x.grad.row(i);
    for (std::int64_t j = begin; j < end; ++j) {
      const auto k = static_cast<std::size_t>(j - begin);
      din[j] += c.gain[j] * c.inverse_std[j] * (dout[j] - mean_dy[k] - c.z(in, j) * mean_dy_z[k]);
    }
  }
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& p) {
  check_features(x, p);
  const std::int64_t n = x.value.rows();
  const std::int64_t features = x.value.cols();
  check(n >= 2, "batch_norm: training needs at least 2 rows in a batch, got ", n,
        "; use a larger batch");

  const Columns c{decode(tape, *p.gain), decode(tape, *p.bias), tape.allocate<float>(features),
                  tape.allocate<float>(features)};
  const Var y = tape.variable(x.shape());
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    forward_columns(x.value, y.value, p, c, tape.recording(), begin, end);
  });
  tape.record({p.gain, p.bias}, [&tape, x, y, p, c] {
    const Tensor dgain = tape.gradient(*p.gain);
    const Tensor dbias = tape.gradient(*p.bias);
    for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
      backward_columns(x, y, c, dgain, dbias, begin, end);
    });
  });
  return y;
}

Var batch_norm_inference(Tape& tape, const Var& x, const BatchNormParameters& p) {
  check_features(x, p);
  const float* gain = decode(tape, *p.gain);
  const float* bias = decode(tape, *p.bias);
  const float* mean = p.running_mean->storage().fp32_data();
  const float* variance = p.running_var->storage().fp32_data();
  const Var y = tape.variable(x.shape(), false);
  for_each_row(x.value, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.value.cols(); ++j) {
      const float normalized =
          (x.value.row(i)[j] - mean[j]) / std::sqrt(variance[j] + kBatchNormEps);
      y.value.row(i)[j] = normalized * gain[j] + bias[j];
    }
  });
  return y;
}

}  // namespace tritgrad
