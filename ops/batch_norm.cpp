#include "ops/batch_norm.h"

#include <array>
#include <cmath>

#include "engine/kernel_table.h"
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

// Sums down the columns of a piece, row by row so that memory is read in order; in double.
using ColumnSums = std::array<double, kColumnPiece>;
using ColumnFloats = std::array<float, kColumnPiece>;

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
  Rectify rectify;

  // Columns [begin, begin + n) of a row of x, standardised.
  void standardize(float* z, const float* x, std::int64_t begin, std::int64_t n) const {
    kernels().standardize(z, x + begin, mean + begin, inverse_std + begin, n);
  }
  // Columns [begin, begin + n) of a row of y.
  void finish(float* y, const float* z, std::int64_t begin, std::int64_t n) const {
    if (rectify == Rectify::kNo) {
      return kernels().scale_and_shift(y + begin, z, gain + begin, bias + begin, n);
    }
    ColumnFloats shifted;
    kernels().scale_and_shift(shifted.data(), z, gain + begin, bias + begin, n);
    kernels().relu(y + begin, shifted.data(), n);
  }
};

void forward_columns(const Tensor& x, const Tensor& y, const BatchNormParameters& p,
                     const Columns& c, bool training, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = x.rows();
  const std::int64_t width = end - begin;
  const double count = static_cast<double>(n);
  ColumnSums means{}, squares{};
  for (std::int64_t i = 0; i < n; ++i) {
    kernels().add_to_sums(means.data(), x.row(i) + begin, width);
  }
  for (double& mean : means) mean /= count;
  for (std::int64_t i = 0; i < n; ++i) {
    kernels().add_squares_around(squares.data(), x.row(i) + begin, means.data(), width);
  }
  for (std::int64_t j = begin; j < end; ++j) {
    const auto k = static_cast<std::size_t>(j - begin);
    const double variance = squares[k] / count;
    c.mean[j] = static_cast<float>(means[k]);
    c.inverse_std[j] =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
    if (training) update_running(p, j, n, means[k], variance);
  }
  ColumnFloats z;
  for (std::int64_t i = 0; i < n; ++i) {
    c.standardize(z.data(), x.row(i), begin, width);
    c.finish(y.row(i), z.data(), begin, width);
  }
}

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
// dy loses what the rectifier held back. dx.grad is null where x wants none.
void backward_columns(const Tensor& x, const Tensor& y, const Tensor& dy, const Columns& c,
                      const GradientTarget& dx, const Tensor& dgain, const Tensor& dbias,
                      std::int64_t begin, std::int64_t end) {
  const std::int64_t n = x.rows();
  const std::int64_t width = end - begin;
  ColumnSums sum_dy{}, sum_dy_z{};
  ColumnFloats z;
  for (std::int64_t i = 0; i < n; ++i) {
    float* dy_row = dy.row(i) + begin;
    if (c.rectify == Rectify::kYes) kernels().rectify_gradient(dy_row, y.row(i) + begin, width);
    c.standardize(z.data(), x.row(i), begin, width);
    kernels().add_to_sums(sum_dy.data(), dy_row, width);
    kernels().add_products(sum_dy_z.data(), dy_row, z.data(), width);
  }
  ColumnFloats mean_dy, mean_dy_z, factor;
  for (std::int64_t j = begin; j < end; ++j) {
    const auto k = static_cast<std::size_t>(j - begin);
    dbias.data[j] += static_cast<float>(sum_dy[k]);
    dgain.data[j] += static_cast<float>(sum_dy_z[k]);
    mean_dy[k] = static_cast<float>(sum_dy[k] / static_cast<double>(n));
    mean_dy_z[k] = static_cast<float>(sum_dy_z[k] / static_cast<double>(n));
    factor[k] = c.gain[j] * c.inverse_std[j];
  }
  if (!dx.grad) return;
  for (std::int64_t i = 0; i < n; ++i) {
    c.standardize(z.data(), x.row(i), begin, width);
    float* dy_row = dy.row(i) + begin;
    kernels().standardize_gradient(dy_row, z.data(), factor.data(), mean_dy.data(),
                                   mean_dy_z.data(), width);
    if (!dx.fresh) kernels().add_scaled(dx.grad.row(i) + begin, dy_row, 1.0f, width);
  }
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& p, Rectify rectify) {
  check_features(x, p);
  const std::int64_t n = x.value.rows();
  const std::int64_t features = x.value.cols();
  check(n >= 2, "batch_norm: training needs at least 2 rows in a batch, got ", n,
        "; use a larger batch");

  const Columns c{decode(tape, *p.gain), decode(tape, *p.bias), tape.allocate<float>(features),
                  tape.allocate<float>(features), rectify};
  const Var y = tape.variable(x.shape());
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    forward_columns(x.value, y.value, p, c, tape.recording(), begin, end);
  });
  tape.record(y, {p.gain, p.bias}, [&tape, x, y, p, c] {
    const Tensor dgain = tape.gradient(*p.gain);
    const Tensor dbias = tape.gradient(*p.bias);
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = x.wants_grad() ? tape.target_in_place(x, y) : GradientTarget{};
    for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
      backward_columns(x.value, y.value, dy, c, dx, dgain, dbias, begin, end);
    });
  });
  return y;
}

Var batch_norm_inference(Tape& tape, const Var& x, const BatchNormParameters& p, Rectify rectify) {
  check_features(x, p);
  const std::int64_t features = x.value.cols();
  const float* variance = p.running_var->storage().fp32_data();
  const Columns c{decode(tape, *p.gain), decode(tape, *p.bias),
                  p.running_mean->storage().fp32_data(), tape.allocate<float>(features), rectify};
  for (std::int64_t j = 0; j < features; ++j) {
    c.inverse_std[j] = 1.0f / std::sqrt(variance[j] + kBatchNormEps);
  }
  const Var y = tape.variable(x.shape(), false);
  for_each_column_piece(x.value, [&](std::int64_t begin, std::int64_t end) {
    ColumnFloats z;
    for (std::int64_t i = 0; i < x.value.rows(); ++i) {
      c.standardize(z.data(), x.value.row(i), begin, end - begin);
      c.finish(y.value.row(i), z.data(), begin, end - begin);
    }
  });
  return y;
}

}  // namespace tritgrad
