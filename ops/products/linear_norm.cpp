#include "ops/products/linear_norm.h"

#include <algorithm>
#include <array>

#include "ops/columns.h"
#include "ops/norm_columns.h"
#include "ops/products/integer_linear.h"
#include "ops/products/integer_weight_gradient.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kStripRowBytes = kStripColumns * static_cast<std::int64_t>(sizeof(float));
using StripDoubles = std::array<double, kStripColumns>;

// Cost of an element in all passes of a strip, in products of bytes.
constexpr std::int64_t kPassing = 128;

// z = x W^T in strips, and its statistics for batch norm.
struct MeasuredProduct {
  ColumnBlocked z;
  NormStatistics batch;

  // Measures a strip as it comes from the product.
  void measure(std::int64_t first, std::int64_t n) const {
    const auto count = static_cast<double>(z.rows);
    const float* strip = z.at(0, first);
    StripDoubles means{}, squares{};
    kernels().reductions.add_to_sums(means.data(), strip, kStripColumns, z.rows, n);
    for (double& mean : means) mean /= count;
    kernels().reductions.add_squares_around(squares.data(), strip, kStripColumns, means.data(),
                                            z.rows, n);
    for (std::int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<std::size_t>(c);
      batch.set(first + c, means[at], squares[at], count);
    }
  }

  // Writes the norm of its columns.
  void normalize(const Tensor& y, std::int64_t first, std::int64_t n) const {
    for (std::int64_t top = 0; top < z.rows; top += kRowsAhead) {
      prefetch_rows(y, top + kRowsAhead, kRowsAhead, first, n);
      kernels().layers.batch_norm(y.row(top) + first, y.cols(), z.at(top, first), kStripColumns,
                                  batch.from(first), std::min(kRowsAhead, z.rows - top), n);
    }
  }
};

// Calls then(first, n) after a strip of z has been measured, while it is in the cache.
template <typename Then>
MeasuredProduct multiply_and_measure(Tape& tape, const QuantizedRows& x, const LinearOperands& w,
                                     const BatchNormParameters& p, Rectify rectify,
                                     const Then& then) {
  check_integers("linear", w);
  const MeasuredProduct product{allocate_strips(tape, x.rows, w.outputs),
                                allocate_statistics(tape, p, rectify, 1)};
  integer_forward(tape, w, x, product.z, kPassing, [&](std::int64_t first, std::int64_t n) {
    product.measure(first, n);
    then(product, first, n);
  });
  move_averages(tape, p, product.batch);
  return product;
}

// The operands of backward, and what it makes of each strip.
struct StripGradient {
  NormGradient norm;
  ColumnBlocked z;
  ColumnBlocked dy;
  ColumnBlocked dz;       // in the place of dy, or, where that does not come in strips, of z
  const float* x_scales;  // of x's rows
  QuantizedRows codes;    // of dz's columns, for dW
  double* dz_z;           // sums down the columns, for d scale

  void gather_dy(float* strip, std::int64_t first, std::int64_t n) const {
    for (std::int64_t top = 0; top < z.rows; top += kRowsAhead) {
      prefetch_rows({dy.data, {dy.rows, dy.ld}}, top + kRowsAhead, kRowsAhead, first, n);
      for (std::int64_t r = top; r < std::min(z.rows, top + kRowsAhead); ++r) {
        std::copy_n(dy.at(r, first), n, strip + r * kStripColumns);
      }
    }
  }

  // Sums dy, one strip of it, which loses what the rectifier held back.
  void sum_dy(float* strip, std::int64_t first, std::int64_t n) const {
    StripDoubles sum_dy{}, sum_dy_z{};
    for (std::int64_t top = 0; top < z.rows; top += kRowsAhead) {
      prefetch<Near::kNext>(strip + (top + kRowsAhead) * kStripColumns,
                            kRowsAhead * kStripRowBytes);
      prefetch<Near::kNext>(z.at(top + kRowsAhead, first), kRowsAhead * kStripRowBytes);
      kernels().layers.add_batch_norm_sums(
          sum_dy.data(), sum_dy_z.data(), strip + top * kStripColumns, z.at(top, first),
          kStripColumns, norm.batch.from(first), std::min(kRowsAhead, z.rows - top), n);
    }
    for (std::int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<std::size_t>(c);
      norm.set(first + c, sum_dy[at], sum_dy_z[at], static_cast<double>(z.rows));
    }
  }

  // Makes dz of columns [first, first + n), one strip.
  void make_dz(std::int64_t first, std::int64_t n) const {
    if (dy.is_in_strips()) return make_dz_of(dy.at(0, first), first, n);
    alignas(kAlignment) std::array<float, kMostStripRows * kStripColumns> strip;
    gather_dy(strip.data(), first, n);
    make_dz_of(strip.data(), first, n);
    std::copy_n(strip.data(), z.rows * kStripColumns, dz.at(0, first));
  }
  void make_dz_of(float* strip, std::int64_t first, std::int64_t n) const {
    sum_dy(strip, first, n);
    norm.apply(strip, z.at(0, first), kStripColumns, z.rows, first, n);
    std::fill_n(dz_z + first, n, 0.0);
    kernels().reductions.add_products(dz_z + first, strip, z.at(0, first), kStripColumns, z.rows,
                                      n);
    quantize_strip(codes, first, strip, x_scales, n);
  }
};

void backward_in_strips(Tape& tape, const QuantizedVar& x, const LinearOperands& w,
                        const BatchNormParameters& p, const MeasuredProduct& product,
                        const ColumnBlocked& dy) {
  const ColumnBlocked& z = product.z;
  const ColumnBlocked& dz = dy.is_in_strips() ? dy : z;
  const StripGradient gradient{allocate_gradient(tape, p, product.batch, 1),
                               z,
                               dy,
                               dz,
                               x.rows.scales,
                               allocate_rows(tape, w.outputs, z.rows, false),
                               tape.allocate_scratch<double>(w.outputs)};
  parallel_pieces(
      w.outputs, kStripColumns, kPassing * z.rows,
      [&](std::int64_t begin, std::int64_t end) { gradient.make_dz(begin, end - begin); });
  if (x.wants_grad()) integer_backward_input(tape, w, input_gradient(tape, x), dz);
  integer_backward_weight(tape, w, x.rows, gradient.codes, gradient.dz_z, Share::kWhole);
}

QuantizedVar in_strips(Tape& tape, const QuantizedVar& x, const LinearOperands& w,
                       const BatchNormParameters& p, Rectify rectify) {
  const MeasuredProduct product = multiply_and_measure(
      tape, x.rows, w, p, rectify, [](const MeasuredProduct&, std::int64_t, std::int64_t) {});
  const ColumnBlocked& z = product.z;
  QuantizedVar y{tape.without_value(ColumnBlocked::strips_shape(z.rows, z.cols)),
                 allocate_rows(tape, z.rows, w.outputs, true),
                 /*in_strips=*/true};
  y.rows.rectified = rectify == Rectify::kYes;
  quantize_rows(y.rows, z, product.batch.from(0));
  tape.scratch_reset();
  tape.record(y.var, {}, {p.gain, p.bias, w.weight, w.scale}, [&tape, w, x, y, p, product] {
    backward_in_strips(tape, x, w, p, product,
                       {product.z.rows, product.z.cols, tape.grad_of(y.var).data});
  });
  return y;
}

Var floats_in_strips(Tape& tape, const QuantizedVar& x, const LinearOperands& w,
                     const BatchNormParameters& p, Rectify rectify) {
  const Var y = tape.variable({x.rows.rows, w.outputs});
  const MeasuredProduct product =
      multiply_and_measure(tape, x.rows, w, p, rectify,
                           [&](const MeasuredProduct& of, std::int64_t first, std::int64_t n) {
                             of.normalize(y.value, first, n);
                           });
  tape.scratch_reset();
  tape.record(y, {}, {p.gain, p.bias, w.weight, w.scale}, [&tape, w, x, y, p, product] {
    backward_in_strips(tape, x, w, p, product, tape.grad_of(y));
  });
  return y;
}

// Narrower columns batch norm reads as wide ones (ops/columns.h), whose sums it adds up in another
// order.
bool goes_in_strips(const LinearOperands& w, std::int64_t rows) {
  return w.groups == 1 && rows <= kMostStripRows && w.outputs > kColumnPiece / 2;
}

void check_operands(const Shape& x, const LinearOperands& w, const BatchNormParameters& norm) {
  const Shape z{x.rows(), w.outputs};
  check_inputs("linear", x, w);
  check_batch_norm(z, norm);
  check_batch(z);
}

}  // namespace

QuantizedVar linear_batch_norm(Tape& tape, const QuantizedVar& x, Parameter& weight,
                               Parameter* scale, const BatchNormParameters& norm, Rectify rectify) {
  const LinearOperands w = linear_operands("linear", weight, scale);
  if (!goes_in_strips(w, x.rows.rows) || !in_integers(weight, scale, Compute::kInt8)) {
    const Var z = linear(tape, x, weight, scale);
    const Var y = batch_norm(tape, z, norm, rectify);
    tape.release(z);
    QuantizedVar rounded = quantize(tape, y);
    rounded.rows.rectified = rectify == Rectify::kYes;
    tape.release(y);
    return rounded;
  }
  check_operands(x.shape(), w, norm);
  return in_strips(tape, x, w, norm, rectify);
}

Var linear_batch_norm(Tape& tape, const Var& x, Parameter& weight, Parameter* scale,
                      Compute compute, const BatchNormParameters& norm, Rectify rectify) {
  const LinearOperands w = linear_operands("linear", weight, scale);
  if (!goes_in_strips(w, x.value.rows()) || !in_integers(weight, scale, compute)) {
    const Var z = linear(tape, x, weight, scale, compute);
    const Var y = batch_norm(tape, z, norm, rectify);
    tape.release(z);
    return y;
  }
  check_operands(x.shape(), w, norm);
  const QuantizedRows rows = allocate_rows(tape, x.value.rows(), w.inputs, tape.recording());
  quantize_rows(rows, x.value, nullptr);
  return floats_in_strips(tape, {x, rows}, w, norm, rectify);
}

}  // namespace tritgrad
