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

// The first `n` numbers of an array, repeated behind them until there are `times` times as many.
void repeat(float* numbers, std::int64_t n, std::int64_t times) {
  for (std::int64_t i = 1; i < times; ++i) std::copy_n(numbers, n, numbers + i * n);
}

float* decode(Tape& tape, const Parameter& parameter, std::int64_t times) {
  const Shape shape = parameter.shape();
  auto* values = tape.allocate<float>(shape.size() * times);
  parameter.storage().decode_rows(0, shape.rows(), values);
  repeat(values, shape.size(), times);
  return values;
}

using ColumnFloats = std::array<float, kLongestPiece>;

// What forward leaves for backward; all arrays have one element per column of wide rows.
struct Columns {
  Wide wide;
  const float* gain;
  const float* bias;
  float* mean;
  float* inverse_std;
  Rectify rectify;

  NormColumns from(std::int64_t column) const {
    return NormColumns{mean, inverse_std, gain, bias, rectify == Rectify::kYes}.from(column);
  }
};

// y of x with the statistics in `c`; y may be x.
void normalize(const Tensor& narrow_x, const Tensor& narrow_y, const Columns& c) {
  const Tensor x = c.wide(narrow_x), y = c.wide(narrow_y);
  for_each_tile(c.wide, narrow_x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                    std::int64_t) {
                  ColumnFloats copy;
                  for (std::int64_t i = top; i < bottom; ++i) {
                    prefetch_after(x, i, begin, end - begin);
                    const float* source = x.row(i) + begin;
                    float* to = y.row(i) + begin;
                    if (to == source) {  // kernels want arrays that do not overlap
                      std::copy_n(source, end - begin, copy.data());
                      source = copy.data();
                    }
                    kernels().batch_norm(to, source, c.from(begin), end - begin);
                  }
                });
}

// The statistics of the batch, into `c` and, in training, into the running ones.
void measure(Tape& tape, const Tensor& x, const BatchNormParameters& p, const Columns& c) {
  const double count = static_cast<double>(x.rows());
  const std::int64_t features = c.wide.features;
  const Tensor wide = c.wide(x);
  const double* sums = sum_columns(
      tape, c.wide, x, 1, [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
        prefetch_after(wide, row, begin, n);
        kernels().add_to_sums(to, wide.row(row) + begin, n);
      });
  double* means = tape.allocate_scratch<double>(c.wide.cols());
  for (std::int64_t j = 0; j < c.wide.cols(); ++j) means[j] = sums[j % features] / count;
  const double* squares = sum_columns(
      tape, c.wide, x, 1, [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
        prefetch_after(wide, row, begin, n);
        kernels().add_squares_around(to, wide.row(row) + begin, means + begin, n);
      });
  float* unbiased = tape.allocate_scratch<float>(features);
  for (std::int64_t j = 0; j < features; ++j) {
    const double variance = squares[j] / count;
    unbiased[j] = static_cast<float>(variance * count / (count - 1.0));
    c.mean[j] = static_cast<float>(means[j]);
    c.inverse_std[j] =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
  }
  if (tape.recording()) {
    p.running_mean->move_average(c.mean);
    p.running_var->move_average(unbiased);
  }
  repeat(c.mean, features, c.wide.together);
  repeat(c.inverse_std, features, c.wide.together);
  tape.scratch_reset();
}

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
// dy loses what the rectifier held back, which is seen from x, as that is read anyway. dx.grad is
// null where x wants none.
void backward(Tape& tape, const Tensor& narrow_x, const Tensor& narrow_dy, const Columns& c,
              const GradientTarget& dx, const Tensor& dgain, const Tensor& dbias) {
  const Tensor x = c.wide(narrow_x), dy = c.wide(narrow_dy);
  const std::int64_t features = c.wide.features;
  const std::int64_t cols = c.wide.cols();
  const double* sum_dy =
      sum_columns(tape, c.wide, narrow_x, 2,
                  [&](double* sums, std::int64_t row, std::int64_t begin, std::int64_t n) {
                    prefetch_after(dy, row, begin, n);
                    prefetch_after(x, row, begin, n);
                    kernels().add_batch_norm_sums(sums, sums + cols, dy.row(row) + begin,
                                                  x.row(row) + begin, c.from(begin), n);
                  });
  const double* sum_dy_z = sum_dy + features;
  const double count = static_cast<double>(narrow_x.rows());
  float* mean_dy = tape.allocate_scratch<float>(cols);
  float* mean_dy_z = tape.allocate_scratch<float>(cols);
  float* factor = tape.allocate_scratch<float>(cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    mean_dy[j] = static_cast<float>(sum_dy[j % features] / count);
    mean_dy_z[j] = static_cast<float>(sum_dy_z[j % features] / count);
    factor[j] = c.gain[j] * c.inverse_std[j];
  }
  for (std::int64_t j = 0; j < features; ++j) {
    dbias.data[j] += static_cast<float>(sum_dy[j]);
    dgain.data[j] += static_cast<float>(sum_dy_z[j]);
  }
  if (!dx.grad) return;
  const Tensor dx_grad = c.wide(dx.grad);
  for_each_tile(c.wide, narrow_x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                    std::int64_t) {
                  for (std::int64_t i = top; i < bottom; ++i) {
                    float* dy_row = dy.row(i) + begin;
                    prefetch_after(dy, i, begin, end - begin);
                    prefetch_after(x, i, begin, end - begin);
                    kernels().batch_norm_gradient(dy_row, x.row(i) + begin, c.from(begin),
                                                  factor + begin, mean_dy + begin,
                                                  mean_dy_z + begin, end - begin);
                    if (!dx.fresh)
                      kernels().add_scaled(dx_grad.row(i) + begin, dy_row, 1.0f, end - begin);
                  }
                });
}

}  // namespace

Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& p, Rectify rectify) {
  check_features(x, p);
  const std::int64_t n = x.value.rows();
  check(n >= 2, "batch_norm: training needs at least 2 rows in a batch, got ", n,
        "; use a larger batch");

  const Wide wide(x.value);
  const Columns c{wide,
                  decode(tape, *p.gain, wide.together),
                  decode(tape, *p.bias, wide.together),
                  tape.allocate<float>(wide.cols()),
                  tape.allocate<float>(wide.cols()),
                  rectify};
  const Var y = tape.variable(x.shape());
  measure(tape, x.value, p, c);
  normalize(x.value, y.value, c);
  tape.record(y, {x}, {p.gain, p.bias}, [&tape, x, y, p, c] {
    const Tensor dgain = tape.gradient(*p.gain);
    const Tensor dbias = tape.gradient(*p.bias);
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = x.wants_grad() ? tape.target_in_place(x, y) : GradientTarget{};
    backward(tape, x.value, dy, c, dx, dgain, dbias);
  });
  return y;
}

Var batch_norm_inference(Tape& tape, const Var& x, const BatchNormParameters& p, Rectify rectify) {
  check_features(x, p);
  const Wide wide(x.value);
  const Columns c{wide,
                  decode(tape, *p.gain, wide.together),
                  decode(tape, *p.bias, wide.together),
                  decode(tape, *p.running_mean, wide.together),
                  decode(tape, *p.running_var, wide.together),
                  rectify};
  for (std::int64_t j = 0; j < wide.cols(); ++j) {
    c.inverse_std[j] = 1.0f / std::sqrt(c.inverse_std[j] + kBatchNormEps);
  }
  const Var y = tape.recording() ? tape.variable(x.shape(), false) : Var{x.value};
  normalize(x.value, y.value, c);
  return y;
}

}  // namespace tritgrad
