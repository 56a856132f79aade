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

using ColumnFloats = std::array<float, kColumnPiece>;

// `kinds` sums down each column [kinds x columns], in double and in scratch. add(sums, row, begin,
// n) adds a row of columns [begin, begin + n); sums of the next kind lie x.cols() further on. Rows
// are read in order, so that memory is, and the sums of tiles are joined in order.
template <typename Add>
double* sum_columns(Tape& tape, const Tensor& x, std::int64_t kinds, const Add& add) {
  const std::int64_t n = kinds * x.cols();
  double* sums = tape.allocate_scratch<double>(tiles_down(x) * n);
  std::fill_n(sums, tiles_down(x) * n, 0.0);
  for_each_tile(x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) {
                  double* own = sums + top / kTileRows * n + begin;
                  for (std::int64_t row = top; row < bottom; ++row)
                    add(own, row, begin, end - begin);
                });
  for (std::int64_t tile = 1; tile < tiles_down(x); ++tile) {
    for (std::int64_t i = 0; i < n; ++i) sums[i] += sums[tile * n + i];
  }
  return sums;
}

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

// y of x with the statistics in `c`.
void normalize(const Tensor& x, const Tensor& y, const Columns& c) {
  for_each_tile(x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) {
                  ColumnFloats z;
                  for (std::int64_t i = top; i < bottom; ++i) {
                    c.standardize(z.data(), x.row(i), begin, end - begin);
                    c.finish(y.row(i), z.data(), begin, end - begin);
                  }
                });
}

// The statistics of the batch, into `c` and, in training, into the running ones.
void measure(Tape& tape, const Tensor& x, const BatchNormParameters& p, const Columns& c) {
  const double count = static_cast<double>(x.rows());
  double* means = sum_columns(
      tape, x, 1, [&](double* sums, std::int64_t row, std::int64_t begin, std::int64_t n) {
        kernels().add_to_sums(sums, x.row(row) + begin, n);
      });
  for (std::int64_t j = 0; j < x.cols(); ++j) means[j] /= count;
  const double* squares = sum_columns(
      tape, x, 1, [&](double* sums, std::int64_t row, std::int64_t begin, std::int64_t n) {
        kernels().add_squares_around(sums, x.row(row) + begin, means + begin, n);
      });
  for (std::int64_t j = 0; j < x.cols(); ++j) {
    const double variance = squares[j] / count;
    c.mean[j] = static_cast<float>(means[j]);
    c.inverse_std[j] =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
    if (tape.recording()) update_running(p, j, x.rows(), means[j], variance);
  }
  tape.scratch_reset();
}

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
// dy loses what the rectifier held back. dx.grad is null where x wants none.
void backward(Tape& tape, const Tensor& x, const Tensor& y, const Tensor& dy, const Columns& c,
              const GradientTarget& dx, const Tensor& dgain, const Tensor& dbias) {
  const std::int64_t cols = x.cols();
  const double* sum_dy = sum_columns(
      tape, x, 2, [&](double* sums, std::int64_t row, std::int64_t begin, std::int64_t n) {
        float* dy_row = dy.row(row) + begin;
        ColumnFloats z;
        if (c.rectify == Rectify::kYes) kernels().rectify_gradient(dy_row, y.row(row) + begin, n);
        c.standardize(z.data(), x.row(row), begin, n);
        kernels().add_to_sums(sums, dy_row, n);
        kernels().add_products(sums + cols, dy_row, z.data(), n);
      });
  const double* sum_dy_z = sum_dy + cols;
  const double count = static_cast<double>(x.rows());
  float* mean_dy = tape.allocate_scratch<float>(cols);
  float* mean_dy_z = tape.allocate_scratch<float>(cols);
  float* factor = tape.allocate_scratch<float>(cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    dbias.data[j] += static_cast<float>(sum_dy[j]);
    dgain.data[j] += static_cast<float>(sum_dy_z[j]);
    mean_dy[j] = static_cast<float>(sum_dy[j] / count);
    mean_dy_z[j] = static_cast<float>(sum_dy_z[j] / count);
    factor[j] = c.gain[j] * c.inverse_std[j];
  }
  if (!dx.grad) return;
  for_each_tile(x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) {
                  ColumnFloats z;
                  for (std::int64_t i = top; i < bottom; ++i) {
                    float* dy_row = dy.row(i) + begin;
                    c.standardize(z.data(), x.row(i), begin, end - begin);
                    kernels().standardize_gradient(dy_row, z.data(), factor + begin,
                                                   mean_dy + begin, mean_dy_z + begin, end - begin);
                    if (!dx.fresh)
                      kernels().add_scaled(dx.grad.row(i) + begin, dy_row, 1.0f, end - begin);
                  }
                });
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
  measure(tape, x.value, p, c);
  normalize(x.value, y.value, c);
  tape.record(y, {p.gain, p.bias}, [&tape, x, y, p, c] {
    const Tensor dgain = tape.gradient(*p.gain);
    const Tensor dbias = tape.gradient(*p.bias);
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = x.wants_grad() ? tape.target_in_place(x, y) : GradientTarget{};
    backward(tape, x.value, y.value, dy, c, dx, dgain, dbias);
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
  const Var y = tape.recording() ? tape.variable(x.shape(), false) : Var{x.value};
  normalize(x.value, y.value, c);
  return y;
}

}  // namespace tritgrad
