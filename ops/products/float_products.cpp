#include "ops/products/float_products.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "ops/columns.h"
#include "ops/products/dense_product.h"

namespace tritgrad {
namespace {

// Weights are decoded a panel of rows at a time, so no fp32 copy of the matrix ever exists.
constexpr std::int64_t kPanelRows = 128;
constexpr std::int64_t kRowPiece = 64;

// Rows of a product that one unit of work takes: enough to be worth a thread, and a function of the
// shapes alone, so that results do not depend on the number of threads.
std::int64_t rows_per_unit(std::int64_t multiplications_per_row,
                           std::int64_t smallest = kRowPiece) {
  constexpr std::int64_t kWorthAThread = 1 << 19;
  return std::max(smallest, kWorthAThread / std::max<std::int64_t>(1, multiplications_per_row));
}

// Rows of dW in a unit: where there are few, smaller pieces leave something to share.
std::int64_t gradient_rows_per_unit(const LinearOperands& w, std::int64_t batch) {
  const std::int64_t quarter = (w.outputs / 4 + 15) / 16 * 16;
  return rows_per_unit(batch * w.inputs, std::clamp<std::int64_t>(quarter, 16, kRowPiece));
}

// Multiplies each group of a decoded row by its scale.
void apply_scale(const LinearOperands& w, const float* scales, float* row) {
  w.for_each_group(0, w.inputs, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) row[i] *= scales[group];
  });
}

double sum_of_squares(const Tensor& x) {
  return parallel_sum(x.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    return kernels().reductions.sum_of_squares(x.data + begin, end - begin);
  });
}

// Returns a bound of the magnitudes in the weight's gradient: an element of dy^T x is a product of
// two columns, at most that of their lengths. It is a float before it is scaled, too. The bound is
// infinite where to look through the gradient costs less than to go over x and dy, and where it is
// kept in bf16, which is looked through anyway.
double gradient_bound(const LinearOperands& w, const float* scales, const Tensor& x,
                      const Tensor& dy) {
  if (w.weight->bf16_gradient() != nullptr || w.weight->shape().size() < x.size() + dy.size()) {
    return std::numeric_limits<double>::infinity();
  }
  const double product = std::sqrt(sum_of_squares(dy) * sum_of_squares(x));
  if (scales == nullptr) return product;
  const double largest_scale =
      kernels().reductions.max_abs(scales, w.outputs * w.groups);  // NaN if one is
  return largest_scale < 1.0 ? product : largest_scale * product;
}

// Adds one row: d scale += sum trit dW; d weight += scale dW.
void scaled_gradient(const LinearOperands& w, const float* trits, const float* scales,
                     const float* dw_row, float* dweight, float* dscale) {
  w.for_each_group(0, w.inputs, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
    float sum = 0.0f;
    for (std::int64_t i = first; i < last; ++i) {
      sum += trits[i] * dw_row[i];
      dweight[i] += scales[group] * dw_row[i];
    }
    dscale[group] += sum;
  });
}

}  // namespace

const float* float_scales(Tape& tape, const LinearOperands& w) {
  return w.scale == nullptr ? nullptr : decode_scales(tape, w);
}

const float* decode_panel(const LinearOperands& w, const float* scales, std::int64_t begin,
                          std::int64_t end, float* panel) {
  const float* stored = w.weight->storage().fp32_data();
  if (stored != nullptr && scales == nullptr) return stored + begin * w.inputs;
  constexpr std::int64_t kDecodedElements = 32768;
  const std::int64_t piece = std::max<std::int64_t>(1, kDecodedElements / w.inputs);
  parallel_ranges(end - begin, piece, [&](std::int64_t first, std::int64_t last) {
    float* rows = panel + first * w.inputs;
    w.weight->storage().decode_rows(begin + first, begin + last, rows);
    if (scales == nullptr) return;
    for (std::int64_t r = first; r < last; ++r) {
      apply_scale(w, scales + (begin + r) * w.groups, panel + r * w.inputs);
    }
  });
  return panel;
}

void float_forward(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& y) {
  const float* scales = float_scales(tape, w);
  const Tensor panel = tape.scratch({std::min(kPanelRows, w.outputs), w.inputs});
  for (std::int64_t begin = 0; begin < w.outputs; begin += kPanelRows) {
    const std::int64_t end = std::min(w.outputs, begin + kPanelRows);
    const float* rows = decode_panel(w, scales, begin, end, panel.data);
    parallel_ranges(x.rows(), rows_per_unit((end - begin) * w.inputs),
                    [&](std::int64_t first, std::int64_t last) {
                      dense_product(
                          {.m = last - first, .n = end - begin, .k = w.inputs, .transpose_b = true},
                          x.row(first), w.inputs, rows, w.inputs, y.row(first) + begin, w.outputs);
                    });
  }
}

void float_backward_input(Tape& tape, const LinearOperands& w, const GradientTarget& dx,
                          const Tensor& dy) {
  const float* scales = float_scales(tape, w);
  const Tensor panel = tape.scratch({std::min(kPanelRows, w.outputs), w.inputs});
  for (std::int64_t begin = 0; begin < w.outputs; begin += kPanelRows) {
    const std::int64_t end = std::min(w.outputs, begin + kPanelRows);
    const float* rows = decode_panel(w, scales, begin, end, panel.data);
    parallel_ranges(dy.rows(), rows_per_unit((end - begin) * w.inputs),
                    [&](std::int64_t first, std::int64_t last) {
                      dense_product({.m = last - first,
                                     .n = w.inputs,
                                     .k = end - begin,
                                     .accumulate = !dx.fresh || begin > 0},
                                    dy.row(first) + begin, w.outputs, rows, w.inputs,
                                    dx.grad.row(first), w.inputs);
                    });
  }
}

// A piece of rows of dW at a time, passed on to the weight and its scale.
void float_backward_weight(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& dy) {
  const float* scales = float_scales(tape, w);
  const Tensor dweight = tape.gradient(*w.weight, gradient_bound(w, scales, x, dy));
  if (w.scale == nullptr) {
    parallel_ranges(
        w.outputs, gradient_rows_per_unit(w, x.rows()), [&](std::int64_t begin, std::int64_t end) {
          dense_product({.m = end - begin,
                         .n = w.inputs,
                         .k = x.rows(),
                         .transpose_a = true,
                         .accumulate = true},
                        dy.data + begin, w.outputs, x.data, w.inputs, dweight.row(begin), w.inputs);
        });
    return;
  }
  const Tensor dscale = tape.gradient(*w.scale);
  const std::int64_t piece_rows = std::min(w.outputs, gradient_rows_per_unit(w, x.rows()));
  const std::int64_t pieces = (w.outputs + piece_rows - 1) / piece_rows;
  // One scratch slot for each piece that may be under way: a wave of pieces shares the scratch.
  const std::int64_t wave_pieces =
      std::min(pieces, std::max<std::int64_t>(1, kPanelRows / piece_rows));
  const Tensor dw = tape.scratch({wave_pieces * piece_rows, w.inputs});
  const Tensor trits = tape.scratch({wave_pieces, w.inputs});
  for (std::int64_t wave = 0; wave < pieces; wave += wave_pieces) {
    parallel_for(std::min(wave_pieces, pieces - wave), [&](std::int64_t slot) {
      const std::int64_t begin = (wave + slot) * piece_rows;
      const std::int64_t end = std::min(w.outputs, begin + piece_rows);
      float* piece = dw.row(slot * piece_rows);
      dense_product({.m = end - begin, .n = w.inputs, .k = x.rows(), .transpose_a = true},
                    dy.data + begin, w.outputs, x.data, w.inputs, piece, w.inputs);
      for (std::int64_t row = begin; row < end; ++row) {
        w.weight->storage().decode_rows(row, row + 1, trits.row(slot));
        scaled_gradient(w, trits.row(slot), scales + row * w.groups,
                        piece + (row - begin) * w.inputs, dweight.row(row), dscale.row(row));
      }
    });
  }
}

void add_weight_gradient(Tape& tape, const LinearOperands& w, const Tensor& x, const Tensor& dy,
                         const Tensor& dw) {
  const float* scales = float_scales(tape, w);
  const Tensor dweight = tape.gradient(*w.weight, gradient_bound(w, scales, x, dy));
  if (w.scale == nullptr) {
    return for_each_row(dw, [&](std::int64_t row) {
      kernels().reductions.add_scaled(dweight.row(row), dw.row(row), 1.0f, w.inputs);
    });
  }
  const Tensor dscale = tape.gradient(*w.scale);
  const Tensor trits = tape.scratch(dw.shape);
  for_each_row(dw, [&](std::int64_t row) {
    w.weight->storage().decode_rows(row, row + 1, trits.row(row));
    scaled_gradient(w, trits.row(row), scales + row * w.groups, dw.row(row), dweight.row(row),
                    dscale.row(row));
  });
}

}  // namespace tritgrad
