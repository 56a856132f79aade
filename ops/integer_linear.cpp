#include "ops/integer_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "ops/quantized.h"

namespace tritgrad {
namespace {

// Rows of W whose trits are decoded together.
constexpr std::int64_t kTogether = kPanelColumns;
// Rows of x, and depth of dx's sums, that one pass covers: their sums stay in the cache.
constexpr std::int64_t kBatchRows = 256;
constexpr std::int64_t kDepth = 256;

// Trits of rows [begin, end) and of one block of columns, kBlock apart.
using TritTile = std::array<std::int8_t, kTogether * kBlock>;
void decode_tile(const LinearOperands& w, std::int64_t begin, std::int64_t end, std::int64_t col,
                 std::int8_t* trits) {
  const std::int64_t n = std::min(kBlock, w.inputs - col);
  for (std::int64_t row = begin; row < end; ++row) {
    std::int8_t* out = trits + (row - begin) * kBlock;
    w.weight->storage().decode_trits({row, col, n}, out);
    // Depth goes by fours.
    std::fill(out + n, out + round_up(n, 4), std::int8_t{0});
  }
}

// sums [rows x groups] of groups of neighbours in rows of x.
void sum_rows(const QuantizedRows& x, std::int64_t group_size, std::int32_t* sums) {
  const std::int64_t groups = (x.cols + group_size - 1) / group_size;
  parallel_pieces(x.rows, kTogether, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t g = 0; g < groups; ++g) {
        sums[r * groups + g] = kernels().sum_int8(x.codes + r * x.ld + g * group_size,
                                                  std::min(group_size, x.cols - g * group_size));
      }
    }
  });
}

// ---- forward -----------------------------------------------------------------------------------

// What forward reads: rows of x as int8, their sums [rows x groups], and the scales of W.
struct ForwardOperands {
  LinearOperands w;
  QuantizedRows x;
  const std::int32_t* x_sums;
  const float* scales;

  // One scale a row: outputs [begin, end) of row `row` from sums of x (trit + 1).
  void finish_row(const std::int32_t* sums, std::int64_t row, std::int64_t begin, std::int64_t end,
                  const Tensor& y) const {
    kernels().rescale_sums_by(y.row(row) + begin, sums, x_sums[row], x.scales[row], scales + begin,
                              end - begin);
  }
};

// One group of inputs of y: rows [top, top + rows), outputs [begin, end). sums [rows x a panel's
// columns] are those of x (trit + 1).
void finish_group(const ForwardOperands& f, const std::int32_t* sums, std::int64_t group,
                  std::int64_t top, std::int64_t rows, std::int64_t begin, std::int64_t end,
                  const Tensor& y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t* row_sums = sums + r * kPanelColumns;
    if (f.w.groups == 1) {
      f.finish_row(row_sums, top + r, begin, end, y);
      continue;
    }
    const std::int32_t offset = f.x_sums[(top + r) * f.w.groups + group];
    float* out = y.row(top + r);
    for (std::int64_t o = begin; o < end; ++o) {
      const float value = f.x.scales[top + r] * f.scales[o * f.w.groups + group] *
                          static_cast<float>(row_sums[o - begin] - offset);
      out[o] = group == 0 ? value : out[o] + value;
    }
  }
}

// y of rows [top, bottom) of x and of rows [begin, end) of W, one panel.
void forward_tile(const ForwardOperands& f, std::int64_t top, std::int64_t bottom,
                  std::int64_t begin, std::int64_t end, const Tensor& y) {
  alignas(kAlignment) TritTile trits;
  alignas(kAlignment) std::array<std::uint8_t, kBlock * kPanelColumns> panel;
  alignas(kAlignment) std::array<std::int32_t, kBatchRows * kPanelColumns> sums;
  const std::int64_t used = (bottom - top) * kPanelColumns;
  std::fill_n(sums.data(), used, 0);
  const LinearOperands& w = f.w;
  std::int64_t group = 0;
  for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
    decode_tile(w, begin, end, col, trits.data());
    const std::int64_t block_end = std::min(w.inputs, col + kBlock);
    kernels().pack_across(panel.data(), trits.data(), kBlock, round_up(block_end - col, 4),
                          end - begin, 1);
    // Stretches of the block that share a scale.
    for (std::int64_t first = col; first < block_end;) {
      const std::int64_t group_end = std::min(w.inputs, (group + 1) * w.group_size);
      const std::int64_t last = std::min(block_end, group_end);
      kernels().multiply_panel(sums.data(), kPanelColumns, f.x.codes + top * f.x.ld + first, f.x.ld,
                               bottom - top, panel.data() + (first - col) * kPanelColumns,
                               (last - first + 3) / 4, PanelRange::kTrits);
      if (last == group_end) {
        finish_group(f, sums.data(), group, top, bottom - top, begin, end, y);
        if (++group < w.groups) std::fill_n(sums.data(), used, 0);
      }
      first = last;
    }
  }
}

// Up to so many rows, each is multiplied with the weights as they are stored.
constexpr std::int64_t kFewRows = 3;

void forward(Tape& tape, const LinearOperands& w, const QuantizedRows& x, const Tensor& y) {
  auto* x_sums = tape.allocate_scratch<std::int32_t>(x.rows * w.groups);
  sum_rows(x, w.group_size, x_sums);
  const ForwardOperands f{w, x, x_sums, decode_scales(tape, w)};
  parallel_pieces(w.outputs, kTogether, x.rows * w.inputs,
                  [&](std::int64_t begin, std::int64_t end) {
                    if (x.rows <= kFewRows && w.groups == 1) {
                      std::array<std::int32_t, kTogether> sums;
                      for (std::int64_t r = 0; r < x.rows; ++r) {
                        w.weight->storage().dot_rows(begin, end, x.codes + r * x.ld, sums.data());
                        f.finish_row(sums.data(), r, begin, end, y);
                      }
                      return;
                    }
                    for (std::int64_t top = 0; top < x.rows; top += kBatchRows) {
                      forward_tile(f, top, std::min(x.rows, top + kBatchRows), begin, end, y);
                    }
                  });
  tape.scratch_reset();
}

// ---- dx ----------------------------------------------------------------------------------------

constexpr std::int64_t kPanelsPerBlock = kBlock / kPanelColumns;

// dx[rows][first, last) = scale * sums over all outputs, or added to it; the columns lie in one
// block.
void backward_input_tile(const LinearOperands& w, const QuantizedRows& z,
                         const std::int32_t* z_sums, std::int64_t first, std::int64_t last,
                         const GradientTarget& dx) {
  alignas(kAlignment) TritTile trits;
  alignas(kAlignment) std::array<std::uint8_t, kPanelsPerBlock * kDepth * kPanelColumns> panels;
  alignas(kAlignment) std::array<std::int32_t, kPanelsPerBlock * kBatchRows * kPanelColumns> sums;
  const std::int64_t col = first / kBlock * kBlock;
  const std::int64_t count = (last - first + kPanelColumns - 1) / kPanelColumns;
  constexpr std::int64_t kPanelBytes = kDepth * kPanelColumns;
  for (std::int64_t top = 0; top < z.rows; top += kBatchRows) {
    const std::int64_t rows = std::min(kBatchRows, z.rows - top);
    for (std::int64_t p = 0; p < count; ++p) {
      std::fill_n(sums.data() + p * kBatchRows * kPanelColumns, rows * kPanelColumns, 0);
    }
    for (std::int64_t output = 0; output < w.outputs; output += kDepth) {
      const std::int64_t depth = std::min(kDepth, w.outputs - output);
      for (std::int64_t part = 0; part < depth; part += kTogether) {
        const std::int64_t n = std::min(kTogether, depth - part);
        decode_tile(w, output + part, output + part + n, col, trits.data());
        for (std::int64_t p = 0; p < count; ++p) {
          const std::int64_t column = first + p * kPanelColumns;
          kernels().pack_down(panels.data() + p * kPanelBytes + part * kPanelColumns,
                              trits.data() + column - col, kBlock, n,
                              std::min(kPanelColumns, last - column), 1);
        }
      }
      for (std::int64_t p = 0; p < count; ++p) {
        kernels().multiply_panel(sums.data() + p * kBatchRows * kPanelColumns, kPanelColumns,
                                 z.codes + top * z.ld + output, z.ld, rows,
                                 panels.data() + p * kPanelBytes, (depth + 3) / 4,
                                 PanelRange::kTrits);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const float scale = z.scales[top + r];
      for (std::int64_t p = 0; p < count; ++p) {
        const std::int32_t* sum = sums.data() + (p * kBatchRows + r) * kPanelColumns;
        const std::int64_t column = first + p * kPanelColumns;
        float* out = dx.grad.row(top + r) + column;
        const std::int64_t n = std::min(kPanelColumns, last - column);
        std::array<float, kPanelColumns> share;
        kernels().rescale_sums(dx.fresh ? out : share.data(), sum, z_sums[top + r], scale, n);
        if (!dx.fresh) kernels().add_scaled(out, share.data(), 1.0f, n);
      }
    }
  }
}

// dx = (dy E) T, or added to it. Groups of inputs have columns of their own.
void backward_input(Tape& tape, const LinearOperands& w, const GradientTarget& dx,
                    const Tensor& dy) {
  const float* scales = decode_scales(tape, w);
  float* factors = tape.allocate_scratch<float>(w.outputs);
  auto* z_sums = tape.allocate_scratch<std::int32_t>(dy.rows());
  const QuantizedRows z = allocate_rows(tape, dy.rows(), w.outputs, false);
  for (std::int64_t group = 0; group < w.groups; ++group) {
    for (std::int64_t o = 0; o < w.outputs; ++o) factors[o] = scales[o * w.groups + group];
    quantize_rows(z, dy, factors);
    sum_rows(z, z.cols, z_sums);
    const std::int64_t begin = group * w.group_size;
    const std::int64_t end = std::min(w.inputs, begin + w.group_size);
    const std::int64_t first_block = begin / kBlock;
    parallel_for((end + kBlock - 1) / kBlock - first_block, [&](std::int64_t unit) {
      const std::int64_t block = first_block + unit;
      backward_input_tile(w, z, z_sums, std::max(begin, block * kBlock),
                          std::min(end, (block + 1) * kBlock), dx);
    });
  }
}

// ---- dW ----------------------------------------------------------------------------------------

// dW of the trits: E times dy^T x.
struct WeightGradient {
  LinearOperands w;
  const float* scales;
  QuantizedRows dy;  // [outputs x n], times the scales of x's rows
  Panels x;          // of x's columns
  const std::int32_t* dy_sums;

  // Rows [row_begin, row_end), columns [col_begin, col_end) of dy^T x; times E where it has one
  // number a row and is asked for.
  enum class Scaled { kNo, kYes };
  void read_product(Scaled scaled, std::int64_t row_begin, std::int64_t row_end,
                    std::int64_t col_begin, std::int64_t col_end, float* out) const {
    constexpr std::int64_t kRows = GradientSource::kRows;
    const std::int64_t cols = col_end - col_begin;
    for (std::int64_t top = row_begin; top < row_end; top += kRows) {
      const std::int64_t rows = std::min(kRows, row_end - top);
      for (std::int64_t p = col_begin / kPanelColumns; p * kPanelColumns < col_end; ++p) {
        alignas(kAlignment) std::array<std::int32_t, kRows * kPanelColumns> sums{};
        kernels().multiply_panel(sums.data(), kPanelColumns, dy.codes + top * dy.ld, dy.ld, rows,
                                 x.at(p, 0), x.groups, x.range());
        const std::int64_t first = std::max(col_begin, p * kPanelColumns);
        const std::int64_t last = std::min(col_end, (p + 1) * kPanelColumns);
        for (std::int64_t r = 0; r < rows; ++r) {
          const float scale = scaled == Scaled::kYes ? scales[top + r] : 1.0f;
          kernels().rescale_sums(out + (top - row_begin + r) * cols + first - col_begin,
                                 sums.data() + r * kPanelColumns + first - p * kPanelColumns,
                                 x.offset * dy_sums[top + r], dy.scales[top + r] * scale,
                                 last - first);
        }
      }
    }
  }

  void read(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
            std::int64_t col_end, float* out) const {
    if (w.groups == 1) {
      return read_product(Scaled::kYes, row_begin, row_end, col_begin, col_end, out);
    }
    read_product(Scaled::kNo, row_begin, row_end, col_begin, col_end, out);
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const float* row_scales = scales + row * w.groups;
      float* numbers = out + (row - row_begin) * (col_end - col_begin);
      for (std::int64_t first = col_begin; first < col_end;) {
        const std::int64_t group = first / w.group_size;
        const std::int64_t last = std::min(col_end, (group + 1) * w.group_size);
        for (std::int64_t i = first; i < last; ++i) numbers[i - col_begin] *= row_scales[group];
        first = last;
      }
    }
  }
};

// d scale of one row from dW itself: the sum over each group of trit times dW.
void scale_gradient_of_row(const WeightGradient& gradient, std::int64_t row, float* dscale) {
  const LinearOperands& w = gradient.w;
  std::array<float, kBlock> dw;
  std::array<std::int8_t, kBlock> trits;
  for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
    const std::int64_t n = std::min(kBlock, w.inputs - col);
    gradient.read_product(WeightGradient::Scaled::kNo, row, row + 1, col, col + n, dw.data());
    w.weight->storage().decode_trits({row, col, n}, trits.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      dscale[(col + i) / w.group_size] += static_cast<float>(trits[at]) * dw[at];
    }
  }
}

// d scale. With one scale a row, y / E is what E multiplied, so d E = sum of dy y / E.
void backward_scale(Tape& tape, const WeightGradient& gradient, const Tensor& y, const Tensor& dy) {
  const LinearOperands& w = gradient.w;
  const Tensor dscale = tape.gradient(*w.scale);
  constexpr std::int64_t kColumns = 256;
  parallel_pieces(w.outputs, kColumns, 8 * y.rows(), [&](std::int64_t begin, std::int64_t end) {
    std::array<double, kColumns> sums{};
    if (w.groups == 1) {
      for (std::int64_t r = 0; r < y.rows(); ++r) {
        kernels().add_products(sums.data(), dy.row(r) + begin, y.row(r) + begin, end - begin);
      }
    }
    for (std::int64_t o = begin; o < end; ++o) {
      if (w.groups == 1 && gradient.scales[o] != 0.0f) {
        dscale.data[o] += static_cast<float>(sums[static_cast<std::size_t>(o - begin)] /
                                             double{gradient.scales[o]});
      } else {
        scale_gradient_of_row(gradient, o, dscale.row(o));
      }
    }
  });
}

void backward_weight(Tape& tape, const LinearOperands& w, const QuantizedRows& x, const Tensor& y,
                     const Tensor& dy) {
  auto* gradient = tape.allocate_scratch<WeightGradient>(1);
  auto* dy_sums = tape.allocate_scratch<std::int32_t>(w.outputs);
  *gradient = {w, decode_scales(tape, w), quantize_columns(tape, dy, x.scales),
               pack_columns(tape, x), dy_sums};
  sum_rows(gradient->dy, gradient->dy.cols, dy_sums);
  bool finite = true;
  const float most = 127.0f * 127.0f * static_cast<float>(dy.rows());
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    const float largest = kernels().max_abs(gradient->scales + o * w.groups, w.groups);
    finite &= std::isfinite(most * gradient->dy.scales[o] * largest);
  }
  backward_scale(tape, *gradient, y, dy);

  auto* source = tape.allocate_scratch<GradientSource>(1);
  *source = {[](const void* context, std::int64_t row_begin, std::int64_t row_end,
                std::int64_t col_begin, std::int64_t col_end, float* out) {
               static_cast<const WeightGradient*>(context)->read(row_begin, row_end, col_begin,
                                                                 col_end, out);
             },
             gradient, finite};
  if (tape.offer_gradient(*w.weight, *source)) return;
  const Tensor dweight = tape.gradient(*w.weight);
  parallel_pieces(w.outputs, GradientSource::kRows, dy.rows() * w.inputs,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::array<float, GradientSource::kRows * kBlock> tile;
                    for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
                      const std::int64_t n = std::min(kBlock, w.inputs - col);
                      gradient->read(begin, end, col, col + n, tile.data());
                      for (std::int64_t row = begin; row < end; ++row) {
                        kernels().add_scaled(dweight.row(row) + col,
                                             tile.data() + (row - begin) * n, 1.0f, n);
                      }
                    }
                  });
}

// Sums of 32 bits hold so many products: of a code and trit + 1, and of a byte and a code of dy.
constexpr std::int64_t kMostInputs = 8'000'000;
static_assert(255 * kMostInputs <= std::numeric_limits<std::int32_t>::max());
constexpr std::int64_t kMostRows = 65'536;
static_assert(255 * 127 * kMostRows <= std::numeric_limits<std::int32_t>::max());

}  // namespace

Var integer_linear(Tape& tape, const Var& x, const LinearOperands& w) {
  check(std::max(w.inputs, w.outputs) <= kMostInputs, "linear: '", w.weight->name(), "' has shape ",
        w.weight->shape().str(), "; in int8 an axis has at most ", kMostInputs,
        " elements; use --compute fp32");
  check(w.groups == 1 || w.group_size % 4 == 0, "linear: '", w.weight->name(), "' has a scale for ",
        w.group_size, " inputs; in int8 groups are a multiple of 4");
  check(x.value.rows() <= kMostRows, "linear: x has shape ", x.shape().str(),
        "; in int8 a batch has at most ", kMostRows,
        " rows; use a smaller batch or --compute fp32");
  const Var y = tape.variable({x.value.rows(), w.outputs});
  const QuantizedRows codes = allocate_rows(tape, x.value.rows(), w.inputs, tape.recording());
  quantize_rows(codes, x.value, nullptr);
  forward(tape, w, codes, y.value);
  tape.record(y, {w.weight, w.scale}, [&tape, w, x, y, codes] {
    const Tensor dy = tape.grad_of(y);
    if (x.wants_grad()) {
      backward_input(tape, w, tape.target(x), dy);
      tape.scratch_reset();
    }
    backward_weight(tape, w, codes, y.value, dy);
  });
  return y;
}

}  // namespace tritgrad
