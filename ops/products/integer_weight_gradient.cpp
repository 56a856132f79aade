#include "ops/products/integer_weight_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "ops/columns.h"
#include "ops/products/trit_panels.h"

namespace tritgrad {
namespace {

// Returns how many rows of the prefetch list each panel of so many columns takes.
std::int64_t rows_a_panel(std::int64_t rows, std::int64_t cols) {
  const std::int64_t panels = (cols + kPanelColumns - 1) / kPanelColumns;
  return (rows + panels - 1) / panels;
}

// dW of the trits: E times dy^T x.
struct WeightGradient {
  LinearOperands w;
  // E; with one number a row, and d E known, times the scales of dy: what makes dW of the product.
  const float* scales;
  QuantizedRows dy;             // [outputs x n], times the scales of x's rows
  Panels x;                     // of x's columns
  const std::int32_t* offsets;  // what the offset of x's bytes adds to each row of dy^T x

  // Multiplies rows [top, top + rows) with panel p up to column `last`, which leaves the offset of
  // x's bytes in the sums. Columns that fill the last vector are written, too.
  void multiply(std::int64_t top, std::int64_t rows, std::int64_t p, std::int64_t last,
                std::int32_t* sums, std::int64_t ld, const PrefetchList& ahead) const {
    kernels().products.multiply_panel(sums, ld, dy.codes + top * dy.ld, dy.ld, rows,
                                      last - p * kPanelColumns, x.at(p, 0), x.groups, x.range(),
                                      /*add=*/false, ahead);
  }

  // Reads rows [row_begin, row_end), columns [col_begin, col_end) of dy^T x, each row times its
  // factor.
  void read_product(const float* factors, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end, float* out,
                    PrefetchList ahead = {}) const {
    constexpr std::int64_t kRows = LazyGradient::kRows;
    const std::int64_t cols = col_end - col_begin;
    const std::int64_t share = rows_a_panel(row_end - row_begin, cols);
    for (std::int64_t top = row_begin; top < row_end; top += kRows) {
      const std::int64_t rows = std::min(kRows, row_end - top);
      for (std::int64_t p = col_begin / kPanelColumns; p * kPanelColumns < col_end; ++p) {
        alignas(kAlignment) std::array<std::int32_t, kRows * kPanelColumns> sums;
        const std::int64_t first = std::max(col_begin, p * kPanelColumns);
        const std::int64_t last = std::min(col_end, (p + 1) * kPanelColumns);
        multiply(top, rows, p, last, sums.data(), kPanelColumns, ahead.take(share));
        kernels().products.rescale_sums(out + (top - row_begin) * cols + first - col_begin, cols,
                                        sums.data() + first - p * kPanelColumns, kPanelColumns,
                                        offsets + top, factors + top, rows, last - first);
      }
    }
  }

  // Reads the sums of a piece of blocks, which begin where a panel does.
  SumRows read_sums(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                    std::int64_t col_end, std::int32_t* sums, PrefetchList ahead) const {
    const std::int64_t rows = row_end - row_begin;
    const std::int64_t share = rows_a_panel(rows, col_end - col_begin);
    for (std::int64_t first = col_begin; first < col_end; first += kPanelColumns) {
      multiply(row_begin, rows, first / kPanelColumns, std::min(col_end, first + kPanelColumns),
               sums + first - col_begin, kBlock, ahead.take(share));
    }
    return {offsets + row_begin, scales + row_begin};
  }

  void read(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
            std::int64_t col_end, float* out, const PrefetchList& ahead = {}) const {
    if (w.groups == 1) {
      return read_product(scales, row_begin, row_end, col_begin, col_end, out, ahead);
    }
    read_product(dy.scales, row_begin, row_end, col_begin, col_end, out, ahead);
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const float* row_scales = scales + row * w.groups;
      float* numbers = out + (row - row_begin) * (col_end - col_begin);
      w.for_each_group(col_begin, col_end,
                       [&](std::int64_t group, std::int64_t first, std::int64_t last) {
                         for (std::int64_t i = first; i < last; ++i)
                           numbers[i - col_begin] *= row_scales[group];
                       });
    }
  }
};

// Adds d scale of rows [begin, end), at most kRows, from dW: the sum over each group of trit times
// dW.
void scale_gradient_of_rows(const WeightGradient& gradient, std::int64_t begin, std::int64_t end,
                            const Tensor& dscale) {
  const LinearOperands& w = gradient.w;
  std::array<float, LazyGradient::kRows * kBlock> dw;
  std::array<float, kBlock> signs;
  std::array<std::int8_t, kBlock> trits;
  for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
    const std::int64_t n = std::min(kBlock, w.inputs - col);
    gradient.read_product(gradient.dy.scales, begin, end, col, col + n, dw.data());
    for (std::int64_t row = begin; row < end; ++row) {
      decode_trits(w.weight->storage(), Block{row, col, n}, trits.data());
      kernels().codecs.trits_to_float(signs.data(), trits.data(), n);
      float* products = dw.data() + (row - begin) * n;
      for (std::int64_t i = 0; i < n; ++i) products[i] *= signs[static_cast<std::size_t>(i)];
      w.for_each_group(
          col, col + n, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
            dscale.row(row)[group] +=
                static_cast<float>(kernels().reductions.sum(products + first - col, last - first));
          });
    }
  }
}

// Returns the sums of dy y down the columns.
const double* sum_products(Tape& tape, const Tensor& y, const Tensor& dy) {
  const Wide wide(y);
  return sum_columns(tape, wide, y, 1,
                     [&](double* to, std::int64_t row, std::int64_t begin, std::int64_t n) {
                       prefetch_after(wide(dy), row, begin, n);
                       prefetch_after(wide(y), row, begin, n);
                       kernels().reductions.add_products(to, wide(dy).row(row) + begin,
                                                         wide(y).row(row) + begin, 0, 1, n);
                     });
}

// Adds d scale. With one scale a row, y / E is what E multiplied, so d E = sum of dy y / E.
void backward_scale(Tape& tape, const WeightGradient& gradient, const double* dy_y) {
  const LinearOperands& w = gradient.w;
  const Tensor dscale = tape.gradient(*w.scale);
  constexpr std::int64_t kRows = LazyGradient::kRows;
  if (w.groups > 1) {
    return parallel_pieces(w.outputs, kRows, gradient.dy.cols * w.inputs,
                           [&](std::int64_t begin, std::int64_t end) {
                             scale_gradient_of_rows(gradient, begin, end, dscale);
                           });
  }
  parallel_ranges(w.outputs, kColumnPiece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      if (gradient.scales[o] != 0.0f) {
        dscale.data[o] += static_cast<float>(dy_y[o] / double{gradient.scales[o]});
      } else {
        scale_gradient_of_rows(gradient, o, o + 1, dscale);
      }
    }
  });
}

}  // namespace

void integer_backward_weight(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                             const Tensor& y, const Tensor& dy, Share share) {
  const QuantizedRows codes = quantize_columns(tape, dy, x.scales);
  integer_backward_weight(tape, w, x, codes, w.groups == 1 ? sum_products(tape, y, dy) : nullptr,
                          share);
}

void integer_backward_weight(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                             const QuantizedRows& dy, const double* dy_y, Share share) {
  auto* gradient = tape.allocate_scratch<WeightGradient>(1);
  float* scales = decode_scales(tape, w);
  auto* offsets = tape.allocate_scratch<std::int32_t>(w.outputs);
  *gradient = {w, scales, dy, pack_columns(tape, x), offsets};
  std::fill_n(offsets, w.outputs, 0);
  if (gradient->x.offset != 0) sum_rows(gradient->dy, gradient->dy.cols, offsets);
  bool finite = true;
  float bound = 0.0f;  // of what is finite
  const float most = 127.0f * 127.0f * static_cast<float>(dy.cols);
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    // A call for each output would take longer than its one number.
    const float largest = w.groups == 1
                              ? std::abs(scales[o])
                              : kernels().reductions.max_abs(scales + o * w.groups, w.groups);
    const float most_of_row = most * gradient->dy.scales[o] * largest;
    finite &= std::isfinite(most_of_row);
    bound = std::max(bound, most_of_row);
    offsets[o] *= gradient->x.offset;
  }
  backward_scale(tape, *gradient, dy_y);
  if (w.groups == 1) {
    for (std::int64_t o = 0; o < w.outputs; ++o) scales[o] *= gradient->dy.scales[o];
  }

  auto* source = tape.allocate_scratch<LazyGradient>(1);
  *source = {[](const void* context, std::int64_t row_begin, std::int64_t row_end,
                std::int64_t col_begin, std::int64_t col_end, float* out,
                const PrefetchList& ahead) {
               static_cast<const WeightGradient*>(context)->read(row_begin, row_end, col_begin,
                                                                 col_end, out, ahead);
             },
             gradient, finite,
             w.groups > 1 ? nullptr
                          : +[](const void* context, std::int64_t row_begin, std::int64_t row_end,
                                std::int64_t col_begin, std::int64_t col_end, std::int32_t* sums,
                                const PrefetchList& ahead) {
                              return static_cast<const WeightGradient*>(context)->read_sums(
                                  row_begin, row_end, col_begin, col_end, sums, ahead);
                            }};
  if (share == Share::kWhole && tape.offer_gradient(*w.weight, *source)) return;
  const Tensor dweight =
      tape.gradient(*w.weight, finite ? bound : std::numeric_limits<float>::infinity());
  parallel_pieces(w.outputs, LazyGradient::kRows, dy.cols * w.inputs,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::array<float, LazyGradient::kRows * kBlock> piece;
                    for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
                      const std::int64_t n = std::min(kBlock, w.inputs - col);
                      gradient->read(begin, end, col, col + n, piece.data());
                      for (std::int64_t row = begin; row < end; ++row) {
                        kernels().reductions.add_scaled(dweight.row(row) + col,
                                                        piece.data() + (row - begin) * n, 1.0f, n);
                      }
                    }
                  });
}

}  // namespace tritgrad
