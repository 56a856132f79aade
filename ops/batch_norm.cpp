#include "ops/batch_norm.h"

#include <array>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"
#include "ops/norm_columns.h"

namespace tritgrad {
namespace {

using ColumnFloats = std::array<float, kLongestPiece>;

// The statistics of a batch, one for each column of wide rows.
struct Columns : NormStatistics {
  Wide wide;
};

// Normalises rows [top, bottom) of columns [begin, end) of wide x into y, which may be x.
void normalize_piece(const Tensor& x, const Tensor& y, const Columns& c, std::int64_t begin,
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
    kernels().layers.batch_norm(to, 0, source, 0, c.from(begin), 1, end - begin);
  }
}

// y of x with the statistics in `c`; y may be x.
void normalize(const Tensor& narrow_x, const Tensor& narrow_y, const Columns& c) {
  const Tensor x = c.wide(narrow_x), y = c.wide(narrow_y);
  for_each_piece(c.wide, narrow_x,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                     std::int64_t) { normalize_piece(x, y, c, begin, end, top, bottom); });
}

// The statistics of x, and y by them.
void measure_and_normalize_whole(const Tensor& x, const Tensor& y, const Columns& c) {
  const auto count = static_cast<double>(x.rows());
  for_each_column_piece(x, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    std::array<double, kLongestPiece> means{}, squares{};
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      prefetch_after(x, i, begin, n);
      kernels().reductions.add_to_sums(means.data(), x.row(i) + begin, 0, 1, n);
    }
    for (double& mean : means) mean /= count;
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      prefetch_after(x, i, begin, n);
      kernels().reductions.add_squares_around(squares.data(), x.row(i) + begin, 0, means.data(), 1,
                                              n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      c.set(begin + j, means[at], squares[at], count);
    }
    normalize_piece(x, y, c, begin, end, 0, x.rows());
  });
}

// Measures and normalises where columns are not whole: a pass of all of them after the other.
void measure_and_normalize(Tape& tape, const Tensor& x, const Tensor& y, const Columns& c) {
  const auto count = static_cast<double>(x.rows());
  const std::int64_t features = c.wide.features;
  const Tensor wide = c.wide(x);
  const double* sums = sum_columns(
      tape, c.wide, x, 1, [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
        prefetch_after(wide, row, begin, n);
        kernels().reductions.add_to_sums(to, wide.row(row) + begin, 0, 1, n);
      });
  double* means = tape.allocate_scratch<double>(c.wide.cols());
  for (std::int64_t j = 0; j < c.wide.cols(); ++j) means[j] = sums[j % features] / count;
  const double* squares = sum_columns(
      tape, c.wide, x, 1, [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
        prefetch_after(wide, row, begin, n);
        kernels().reductions.add_squares_around(to, wide.row(row) + begin, 0, means + begin, 1, n);
      });
  for (std::int64_t j = 0; j < features; ++j) {
    c.set(j, means[j], squares[j], count);
  }
  repeat_columns(c.mean, features, c.wide.together);
  repeat_columns(c.inverse_std, features, c.wide.together);
  normalize(x, y, c);
}

// The gradient of wide x and dy. dx.grad is null where x wants none.
struct Gradient : NormGradient {
  Wide wide;
  Tensor x, dy;  // wide
  GradientTarget dx;

  void add_sums(double* sum_dy, double* sum_dy_z, std::int64_t row, std::int64_t begin,
                std::int64_t n) const {
    prefetch_after(dy, row, begin, n);
    prefetch_after(x, row, begin, n);
    kernels().layers.add_batch_norm_sums(sum_dy, sum_dy_z, dy.row(row) + begin, x.row(row) + begin,
                                         0, batch.from(begin), 1, n);
  }
  void write_piece(std::int64_t begin, std::int64_t end, std::int64_t top,
                   std::int64_t bottom) const {
    const Tensor dx_grad = wide(dx.grad);
    for (std::int64_t i = top; i < bottom; ++i) {
      float* dy_row = dy.row(i) + begin;
      prefetch_after(dy, i, begin, end - begin);
      prefetch_after(x, i, begin, end - begin);
      apply(dy_row, x.row(i) + begin, 0, 1, begin, end - begin);
      if (!dx.fresh)
        kernels().reductions.add_scaled(dx_grad.row(i) + begin, dy_row, 1.0f, end - begin);
    }
  }
};

void backward_whole(const Gradient& g) {
  for_each_column_piece(g.x, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    std::array<double, kLongestPiece> sum_dy{}, sum_dy_z{};
    for (std::int64_t i = 0; i < g.x.rows(); ++i) {
      g.add_sums(sum_dy.data(), sum_dy_z.data(), i, begin, n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      g.set(begin + j, sum_dy[at], sum_dy_z[at], static_cast<double>(g.x.rows()));
    }
    if (g.dx.grad) g.write_piece(begin, end, 0, g.x.rows());
  });
}

void backward(Tape& tape, const Tensor& narrow_x, const Gradient& g) {
  const Wide& wide = g.wide;
  const std::int64_t features = wide.features, cols = wide.cols();
  const double* sums =
      sum_columns(tape, wide, narrow_x, 2,
                  [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
                    g.add_sums(to, to + cols, row, begin, n);
                  });
  for (std::int64_t j = 0; j < features; ++j) {
    g.set(j, sums[j], sums[features + j], static_cast<double>(narrow_x.rows()));
  }
  for (float* numbers : {g.factor, g.mean_dy, g.mean_dy_z}) {
    repeat_columns(numbers, features, wide.together);
  }
  if (!g.dx.grad) return;
  for_each_piece(wide, narrow_x,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                     std::int64_t) { g.write_piece(begin, end, top, bottom); });
}

}  // namespace

void check_batch_norm(const Shape& x, const BatchNormParameters& p) {
  for (const Parameter* parameter : {p.gain, p.bias, p.running_mean, p.running_var}) {
    check(parameter->shape().size() == x.cols(), "batch_norm: x has shape ", x.str(), " but '",
          parameter->name(), "' has shape ", parameter->shape().str());
  }
  check(p.running_mean->storage().fp32_data() != nullptr &&
            p.running_var->storage().fp32_data() != nullptr,
        "batch_norm: running statistics must be stored in fp32");
}

void check_batch(const Shape& x) {
  check(x.rows() >= 2, "batch_norm: training needs at least 2 rows in a batch, got ", x.rows(),
        "; use a larger batch");
}

Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& p, Rectify rectify) {
  check_batch_norm(x.shape(), p);
  check_batch(x.shape());
  const Wide wide(x.value);
  const Columns c{allocate_statistics(tape, p, rectify, wide.together), wide};
  const Var y = tape.variable(x.shape());
  const bool whole = columns_are_whole(wide, x.value);
  if (whole) {
    measure_and_normalize_whole(x.value, y.value, c);
  } else {
    measure_and_normalize(tape, x.value, y.value, c);
  }
  move_averages(tape, p, c);
  tape.scratch_reset();
  tape.record(y, {x}, {p.gain, p.bias}, [&tape, x, y, p, c, whole] {
    const Gradient gradient{
        allocate_gradient(tape, p, c, c.wide.together),
        c.wide,
        c.wide(x.value),
        c.wide(tape.grad_of(y)),
        x.wants_grad() ? tape.target_in_place(x, y) : GradientTarget{},
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
  check_batch_norm(x.shape(), p);
  const Wide wide(x.value);
  const auto decode = [&](const Parameter* parameter) {
    return decode_columns(tape, *parameter, wide.together);
  };
  const Columns c{{decode(p.gain), decode(p.bias), decode(p.running_mean), decode(p.running_var),
                   nullptr, rectify},
                  wide};
  for (std::int64_t j = 0; j < wide.cols(); ++j) {
    c.inverse_std[j] = 1.0f / std::sqrt(c.inverse_std[j] + kBatchNormEps);
  }
  const Var y = tape.recording() ? tape.variable(x.shape(), false) : tape.take_over(x);
  normalize(x.value, y.value, c);
  return y;
}

}  // namespace tritgrad
