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

// Of wide x and y, rows [top, bottom) of columns [begin, end); y may be x.
void normalize_tile(const Tensor& x, const Tensor& y, const Columns& c, std::int64_t begin,
                    std::int64_t end, std::int64_t top, std::int64_t bottom) {
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
}

// y of x with the statistics in `c`; y may be x.
void normalize(const Tensor& narrow_x, const Tensor& narrow_y, const Columns& c) {
  const Tensor x = c.wide(narrow_x), y = c.wide(narrow_y);
  for_each_tile(c.wide, narrow_x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                    std::int64_t) { normalize_tile(x, y, c, begin, end, top, bottom); });
}

// Into `c` and unbiased[j]: the statistics of column j in a batch of `count` rows, from its mean
// and the sum of squares around it.
void set_statistics(const Columns& c, std::int64_t j, double mean, double squares, double count,
                    float* unbiased) {
  const double variance = squares / count;
  unbiased[j] = static_cast<float>(variance * count / (count - 1.0));
  c.mean[j] = static_cast<float>(mean);
  c.inverse_std[j] =
      static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
}

// The statistics of x, and y by them.
void measure_and_normalize_whole(const Tensor& x, const Tensor& y, const Columns& c,
                                 float* unbiased) {
  const auto count = static_cast<double>(x.rows());
  for_whole_columns(x, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    std::array<double, kLongestPiece> means{}, squares{};
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      prefetch_after(x, i, begin, n);
      kernels().add_to_sums(means.data(), x.row(i) + begin, n);
    }
    for (double& mean : means) mean /= count;
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      prefetch_after(x, i, begin, n);
      kernels().add_squares_around(squares.data(), x.row(i) + begin, means.data(), n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      set_statistics(c, begin + j, means[at], squares[at], count, unbiased);
    }
    normalize_tile(x, y, c, begin, end, 0, x.rows());
  });
}

// The same where columns are not whole: a pass of all of them after the other.
void measure_and_normalize(Tape& tape, const Tensor& x, const Tensor& y, const Columns& c,
                           float* unbiased) {
  const auto count = static_cast<double>(x.rows());
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
  for (std::int64_t j = 0; j < features; ++j) {
    set_statistics(c, j, means[j], squares[j], count, unbiased);
  }
  repeat(c.mean, features, c.wide.together);
  repeat(c.inverse_std, features, c.wide.together);
  normalize(x, y, c);
}

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
// dy loses what the rectifier held back, which is seen from x, as that is read anyway. dx.grad is
// null where x wants none.
struct Gradient {
  Columns c;
  Tensor x, dy;  // wide
  GradientTarget dx;
  Tensor dgain, dbias;
  // Of each column:
  float* factor;  // gain * inverse_std
  float* mean_dy;
  float* mean_dy_z;

  void add_sums(double* sum_dy, double* sum_dy_z, std::int64_t row, std::int64_t begin,
                std::int64_t n) const {
    prefetch_after(dy, row, begin, n);
    prefetch_after(x, row, begin, n);
    kernels().add_batch_norm_sums(sum_dy, sum_dy_z, dy.row(row) + begin, x.row(row) + begin,
                                  c.from(begin), n);
  }
  void set_sums(std::int64_t j, double sum_dy, double sum_dy_z, double count) const {
    factor[j] = c.gain[j] * c.inverse_std[j];
    mean_dy[j] = static_cast<float>(sum_dy / count);
    mean_dy_z[j] = static_cast<float>(sum_dy_z / count);
    dbias.data[j] += static_cast<float>(sum_dy);
    dgain.data[j] += static_cast<float>(sum_dy_z);
  }
  void write_tile(std::int64_t begin, std::int64_t end, std::int64_t top,
                  std::int64_t bottom) const {
    const Tensor dx_grad = c.wide(dx.grad);
    for (std::int64_t i = top; i < bottom; ++i) {
      float* dy_row = dy.row(i) + begin;
      prefetch_after(dy, i, begin, end - begin);
      prefetch_after(x, i, begin, end - begin);
      kernels().batch_norm_gradient(dy_row, x.row(i) + begin, c.from(begin), factor + begin,
                                    mean_dy + begin, mean_dy_z + begin, end - begin);
      if (!dx.fresh) kernels().add_scaled(dx_grad.row(i) + begin, dy_row, 1.0f, end - begin);
    }
  }
};

void backward_whole(const Gradient& g) {
  for_whole_columns(g.x, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    std::array<double, kLongestPiece> sum_dy{}, sum_dy_z{};
    for (std::int64_t i = 0; i < g.x.rows(); ++i) {
      g.add_sums(sum_dy.data(), sum_dy_z.data(), i, begin, n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      g.set_sums(begin + j, sum_dy[at], sum_dy_z[at], static_cast<double>(g.x.rows()));
    }
    if (g.dx.grad) g.write_tile(begin, end, 0, g.x.rows());
  });
}

void backward(Tape& tape, const Tensor& narrow_x, const Gradient& g) {
  const Wide& wide = g.c.wide;
  const std::int64_t features = wide.features, cols = wide.cols();
  const double* sums =
      sum_columns(tape, wide, narrow_x, 2,
                  [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
                    g.add_sums(to, to + cols, row, begin, n);
                  });
  for (std::int64_t j = 0; j < features; ++j) {
    g.set_sums(j, sums[j], sums[features + j], static_cast<double>(narrow_x.rows()));
  }
  for (float* numbers : {g.factor, g.mean_dy, g.mean_dy_z}) {
    repeat(numbers, features, wide.together);
  }
  if (!g.dx.grad) return;
  for_each_tile(wide, narrow_x,
                [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                    std::int64_t) { g.write_tile(begin, end, top, bottom); });
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
  float* unbiased = tape.allocate_scratch<float>(wide.features);
  const bool whole = columns_are_whole(wide, x.value);
  if (whole) {
    measure_and_normalize_whole(x.value, y.value, c, unbiased);
  } else {
    measure_and_normalize(tape, x.value, y.value, c, unbiased);
  }
  if (tape.recording()) {
    p.running_mean->move_average(c.mean);
    p.running_var->move_average(unbiased);
  }
  tape.scratch_reset();
  tape.record(y, {x}, {p.gain, p.bias}, [&tape, x, y, p, c, whole] {
    const auto numbers = [&] { return tape.allocate_scratch<float>(c.wide.cols()); };
    const Gradient gradient{
        .c = c,
        .x = c.wide(x.value),
        .dy = c.wide(tape.grad_of(y)),
        .dx = x.wants_grad() ? tape.target_in_place(x, y) : GradientTarget{},
        .dgain = tape.gradient(*p.gain),
        .dbias = tape.gradient(*p.bias),
        .factor = numbers(),
        .mean_dy = numbers(),
        .mean_dy_z = numbers(),
    };
    if (whole) {
      backward_whole(gradient);
    } else {
      backward(tape, x.value, gradient);
    }
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
