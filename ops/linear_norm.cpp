#include "ops/linear_norm.h"

#include <algorithm>
#include <array>

#include "ops/columns.h"
#include "ops/integer_linear.h"
#include "ops/norm_columns.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kStripRowBytes = kStripColumns * static_cast<std::int64_t>(sizeof(float));
using StripDoubles = std::array<double, kStripColumns>;

// The statistics of one strip of z as it comes from the product.
void measure_strip(const Strips& z, const NormStatistics& batch, std::int64_t first,
                   std::int64_t n) {
  const auto count = static_cast<double>(z.rows);
  const float* strip = z.at(first, 0);
  StripDoubles means{}, squares{};
  kernels().add_to_sums(means.data(), strip, kStripColumns, z.rows, n);
  for (double& mean : means) mean /= count;
  kernels().add_squares_around(squares.data(), strip, kStripColumns, means.data(), z.rows, n);
  for (std::int64_t c = 0; c < n; ++c) {
    const auto at = static_cast<std::size_t>(c);
    batch.set(first + c, means[at], squares[at], count);
  }
}

// Cost of an element in all passes of a strip, in products of bytes.
constexpr std::int64_t kPassing = 128;

// What backward knows, and what it makes of each strip.
struct StripGradient {
  NormGradient norm;
  Strips z;
  Strips dy;              // becomes dz
  const float* x_scales;  // of x's rows
  QuantizedRows codes;    // of dz's columns, for dW
  double* dz_z;           // sums down the columns, for d scale

  // dy loses what the rectifier held back.
  void sum_dy(std::int64_t first, std::int64_t n) const {
    StripDoubles sum_dy{}, sum_dy_z{};
    for (std::int64_t top = 0; top < z.rows; top += kRowsAhead) {
      prefetch<Near::kNext>(dy.at(first, top + kRowsAhead), kRowsAhead * kStripRowBytes);
      prefetch<Near::kNext>(z.at(first, top + kRowsAhead), kRowsAhead * kStripRowBytes);
      kernels().add_batch_norm_sums(sum_dy.data(), sum_dy_z.data(), dy.at(first, top),
                                    z.at(first, top), kStripColumns, norm.batch.from(first),
                                    std::min(kRowsAhead, z.rows - top), n);
    }
    for (std::int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<std::size_t>(c);
      norm.set(first + c, sum_dy[at], sum_dy_z[at], static_cast<double>(z.rows));
    }
  }

  // Of columns [first, first + n), one strip.
  void make_dz(std::int64_t first, std::int64_t n) const {
    float* strip = dy.at(first, 0);
    sum_dy(first, n);
    norm.apply(strip, z.at(first, 0), kStripColumns, z.rows, first, n);
    std::fill_n(dz_z + first, n, 0.0);
    kernels().add_products(dz_z + first, strip, z.at(first, 0), kStripColumns, z.rows, n);
    quantize_strip(codes, first, strip, x_scales, n);
  }
};

QuantizedVar in_strips(Tape& tape, const QuantizedVar& x, const LinearOperands& w,
                       const BatchNormParameters& p, Rectify rectify) {
  check_integers("linear", w);
  const std::int64_t rows = x.rows.rows;
  const Strips z = allocate_strips(tape, rows, w.outputs);
  const NormStatistics batch = allocate_statistics(tape, p, rectify, 1);
  QuantizedVar y{tape.without_value(z.shape()), allocate_rows(tape, rows, w.outputs, true),
                 /*in_strips=*/true};
  y.rows.rectified = rectify == Rectify::kYes;
  integer_forward(tape, w, x.rows, z, kPassing,
                  [&](std::int64_t first, std::int64_t n) { measure_strip(z, batch, first, n); });
  quantize_rows(y.rows, z, batch.from(0));
  move_averages(tape, p, batch);
  tape.scratch_reset();
  tape.record(y.var, {}, {p.gain, p.bias, w.weight, w.scale}, [&tape, w, x, y, p, z, batch] {
    const StripGradient gradient{
        allocate_gradient(tape, p, batch, 1),          z,
        {z.rows, z.cols, tape.grad_of(y.var).data},    x.rows.scales,
        allocate_rows(tape, w.outputs, z.rows, false), tape.allocate_scratch<double>(w.outputs)};
    parallel_pieces(
        w.outputs, kStripColumns, kPassing * z.rows,
        [&](std::int64_t begin, std::int64_t end) { gradient.make_dz(begin, end - begin); });
    if (x.wants_grad()) integer_backward_input(tape, w, input_gradient(tape, x), gradient.dy);
    integer_backward_weight(tape, w, x.rows, gradient.codes, gradient.dz_z, Share::kWhole);
  });
  return y;
}

// Narrower columns batch norm reads as wide ones (ops/columns.h), whose sums it adds up in another
// order.
bool goes_in_strips(const LinearOperands& w, std::int64_t rows) {
  return w.groups == 1 && rows <= kMostStripRows && w.outputs > kColumnPiece / 2;
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
  const Shape z{x.rows.rows, w.outputs};
  check_inputs("linear", x.shape(), w);
  check_batch_norm(z, norm);
  check_batch(z);
  return in_strips(tape, x, w, norm, rectify);
}

}  // namespace tritgrad
