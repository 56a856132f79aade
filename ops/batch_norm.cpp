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

  template <typename Term>  // term(row, column) -> double
  ColumnSums(std::int64_t rows, std::int64_t begin, std::int64_t end, Term&& term) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = begin; j < end; ++j) {
        values[static_cast<std::size_t>(j - begin)] += term(i, j);
      }
    }
  }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
};

void update_running(const BatchNormParameters& p, std::int64_t column, std::int64_t n,
                    double batch_mean, double batch_variance) {
  const double unbiased = batch_variance * static_cast<double>(n) / static_cast<double>(n - 1);
  float& mean = p.running_mean->storage().fp32_data()[column];
  float& variance = p.running_var->storage().fp32_data()[column];
  mean += kBatchNormMomentum * (static_cast<float>(batch_mean) - mean);
  variance += kBatchNormMomentum * (static_cast<float>(unbiased) - variance);
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& p) {
  check_features(x, p);
  const std::int64_t n = x.value.rows();
  const std::int64_t features = x.value.cols();
  check(n >= 2, "batch_norm: training needs at least 2 rows in a batch, got ", n,
        "; use a larger batch");

  const float* gain = decode(tape, *p.gain);
  const float* bias = decode(tape, *p.bias);
  float* mean = tape.allocate<float>(features);
  float* inverse_std = tape.allocate<float>(features);
  const Var y = tape.variable(x.shape());
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    const double count = static_cast<double>(n);
    const ColumnSums sum(n, begin, end, [&](std::int64_t i, std::int64_t j) {
      return static_cast<double>(x.value.row(i)[j]);
    });
    const ColumnSums squares(n, begin, end, [&](std::int64_t i, std::int64_t j) {
      const double centered = static_cast<double>(x.value.row(i)[j]) - sum[j - begin] / count;
      return centered * centered;
    });
    for (std::int64_t j = begin; j < end; ++j) {
      const double batch_mean = sum[j - begin] / count;
      const double batch_variance = squares[j - begin] / count;
      mean[j] = static_cast<float>(batch_mean);
      inverse_std[j] =
          static_cast<float>(1.0 / std::sqrt(batch_variance + static_cast<double>(kBatchNormEps)));
      if (tape.recording()) update_running(p, j, n, batch_mean, batch_variance);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = begin; j < end; ++j) {
        const float normalized = (x.value.row(i)[j] - mean[j]) * inverse_std[j];
        y.value.row(i)[j] = normalized * gain[j] + bias[j];
      }
    }
  });

  // With z = (x - mean) * inverse_std and dz = gain * dy:
  // dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)).
  tape.record({p.gain, p.bias}, [&tape, x, y, p, gain, mean, inverse_std, n] {
    const Tensor dgain = tape.gradient(*p.gain);
    const Tensor dbias = tape.gradient(*p.bias);
    for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
      const auto z = [&](std::int64_t i, std::int64_t j) {
        return (x.value.row(i)[j] - mean[j]) * inverse_std[j];
      };
      const ColumnSums sum_dy(n, begin, end, [&](std::int64_t i, std::int64_t j) {
        return static_cast<double>(y.grad.row(i)[j]);
      });
      const ColumnSums sum_dy_z(n, begin, end, [&](std::int64_t i, std::int64_t j) {
        return static_cast<double>(y.grad.row(i)[j]) * static_cast<double>(z(i, j));
      });
      for (std::int64_t j = begin; j < end; ++j) {
        dbias.data[j] += static_cast<float>(sum_dy[j - begin]);
        dgain.data[j] += static_cast<float>(sum_dy_z[j - begin]);
      }
      if (!x.wants_grad()) return;
      const double inverse_n = 1.0 / static_cast<double>(n);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = begin; j < end; ++j) {
          const float mean_dy = static_cast<float>(sum_dy[j - begin] * inverse_n);
          const float mean_dy_z = static_cast<float>(sum_dy_z[j - begin] * inverse_n);
          x.grad.row(i)[j] += gain[j] * inverse_std[j] *
                              (y.grad.row(i)[j] - mean_dy - z(i, j) * mean_dy_z);
        }
      }
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
