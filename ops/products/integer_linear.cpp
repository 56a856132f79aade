// The two products with the trits of W as panels, forward and dx; then the op.
#include "ops/products/integer_linear.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "ops/columns.h"
#include "ops/products/integer_weight_gradient.h"
#include "ops/products/trit_panels.h"

namespace tritgrad {
namespace {

// Rows of x, and depth of dx's sums, that one pass covers: their sums stay in the cache.
constexpr std::int64_t kBatchRows = kMostStripRows;
constexpr std::int64_t kDepth = 256;
// Cost of a sum that becomes a float, in products of bytes.
constexpr std::int64_t kFinishing = 64;

// Calls body(begin, end, top, bottom) for pieces of `grain` of n columns and of kBatchRows of
// `rows`. `cost` is that of a row of one column, in products of bytes.
template <typename Body>
void for_each_piece(std::int64_t n, std::int64_t grain, std::int64_t rows, std::int64_t cost,
                    const Body& body) {
  const std::int64_t passes = (rows + kBatchRows - 1) / kBatchRows;
  parallel_pieces((n + grain - 1) / grain * passes, 1, grain * std::min(rows, kBatchRows) * cost,
                  [&](std::int64_t piece, std::int64_t) {
                    const std::int64_t begin = piece / passes * grain;
                    const std::int64_t top = piece % passes * kBatchRows;
                    body(begin, std::min(n, begin + grain), top, std::min(rows, top + kBatchRows));
                  });
}

static_assert(255 * kLongestSum <= std::numeric_limits<std::int32_t>::max());

}  // namespace

void check_integers(const char* op, const LinearOperands& w) {
  check(std::max(w.inputs, w.outputs) <= kLongestSum, op, ": '", w.weight->name(), "' has shape ",
        w.weight->shape().str(), "; in int8 an axis has at most ", kLongestSum,
        " elements; use --compute fp32");
  check(w.groups == 1 || w.group_size % 4 == 0, op, ": '", w.weight->name(), "' has a scale for ",
        w.group_size, " inputs; in int8 groups are a multiple of 4");
}

// ---- forward ----

namespace {

// The operands of forward: rows of x as int8, their sums [rows x groups], and the scales of W.
struct ForwardOperands {
  LinearOperands w;
  QuantizedRows x;
  const std::int32_t* x_sums;
  const float* scales;

  // Makes outputs [begin, end) of rows [top, top + rows), with one scale a row of W, from sums of x
  // (trit + 1), whose rows are `ld` apart.
  void finish_rows(const std::int32_t* sums, std::int64_t ld, std::int64_t top, std::int64_t rows,
                   std::int64_t begin, std::int64_t end, float* y, std::int64_t ld_y) const {
    const Tensor all{y, {rows, ld_y}};
    for (std::int64_t r = 0; r < rows; r += kRowsAhead) {
      prefetch_rows(all, r + kRowsAhead, kRowsAhead, 0, end - begin);
      kernels().products.rescale_sums_by(y + r * ld_y, ld_y, sums + r * ld, ld, x_sums + top + r,
                                         x.scales + top + r, scales + begin,
                                         std::min(kRowsAhead, rows - r), end - begin);
    }
  }
};

// Adds one group of inputs to y: rows [top, top + rows), outputs [begin, end). sums [rows x a
// panel's columns] are those of x (trit + 1).
void finish_group(const ForwardOperands& f, const std::int32_t* sums, std::int64_t group,
                  std::int64_t top, std::int64_t rows, std::int64_t begin, std::int64_t end,
                  float* y, std::int64_t ld_y) {
  if (f.w.groups == 1) return f.finish_rows(sums, kPanelColumns, top, rows, begin, end, y, ld_y);
  const std::int64_t n = end - begin;
  std::array<float, kPanelColumns> scales;
  for (std::int64_t i = 0; i < n; ++i) {
    scales[static_cast<std::size_t>(i)] = f.scales[(begin + i) * f.w.groups + group];
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::array<float, kPanelColumns> share;
    float* out = y + r * ld_y;
    kernels().products.rescale_sums_by(
        group == 0 ? out : share.data(), kPanelColumns, sums + r * kPanelColumns, kPanelColumns,
        f.x_sums + (top + r) * f.w.groups + group, f.x.scales + top + r, scales.data(), 1, n);
    if (group > 0) kernels().reductions.add_scaled(out, share.data(), 1.0f, n);
  }
}

// Makes y of rows [top, bottom) of x and of rows [begin, end) of W, one panel. Rows of y are ld_y
// apart.
void forward_piece(const ForwardOperands& f, std::int64_t top, std::int64_t bottom,
                   std::int64_t begin, std::int64_t end, float* y, std::int64_t ld_y) {
  alignas(kAlignment) std::array<std::uint8_t, kBlock * kPanelColumns> panel;
  alignas(kAlignment) std::array<std::int32_t, kBatchRows * kPanelColumns> sums;
  const LinearOperands& w = f.w;
  for (std::int64_t col = 0; col < w.inputs; col += kBlock) {
    const MatrixPiece next = col + kBlock < w.inputs ? MatrixPiece{begin, end, col + kBlock}
                             : bottom < f.x.rows     ? MatrixPiece{begin, end, 0}
                                                     : MatrixPiece{end, end + kPanelColumns, 0};
    PrefetchList ahead = w.weight->storage().memory_of(next, Reading::kValue);
    pack_across(w.weight->storage(), {begin, end, col}, panel.data());
    const std::int64_t block_end = std::min(w.inputs, col + kBlock);
    w.for_each_group(
        col, block_end, [&](std::int64_t group, std::int64_t first, std::int64_t last) {
          kernels().products.multiply_panel(
              sums.data(), kPanelColumns, f.x.codes + top * f.x.ld + first, f.x.ld, bottom - top,
              end - begin, panel.data() + (first - col) * kPanelColumns, (last - first + 3) / 4,
              PanelRange::kTrits, /*add=*/first > group * w.group_size, ahead);
          ahead = {};
          if (last == std::min(w.inputs, (group + 1) * w.group_size)) {
            finish_group(f, sums.data(), group, top, bottom - top, begin, end, y, ld_y);
          }
        });
  }
}

// Up to so many rows of x are multiplied one by one with the weights as they are stored.
constexpr std::int64_t kFewRows = 3;
// Then so many rows of W are taken at once, which share what is prepared of x; few enough for 16
// threads to have a part of a matrix of 4096.
constexpr std::int64_t kRowsOfWeights = 256;

ForwardOperands forward_operands(Tape& tape, const LinearOperands& w, const QuantizedRows& x) {
  auto* x_sums = tape.allocate_scratch<std::int32_t>(x.rows * w.groups);
  sum_rows(x, w.group_size, x_sums);
  return {w, x, x_sums, decode_scales(tape, w)};
}

}  // namespace

void integer_forward(Tape& tape, const LinearOperands& w, const QuantizedRows& x,
                     const ColumnBlocked& y, std::int64_t done_cost,
                     const std::function<void(std::int64_t first, std::int64_t n)>& done) {
  check(x.rows <= kMostStripRows, "integer_forward: x has ", x.rows, " rows; strips have at most ",
        kMostStripRows);
  const ForwardOperands f = forward_operands(tape, w, x);
  for_each_piece(w.outputs, kPanelColumns, x.rows, w.inputs + done_cost,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) {
                   forward_piece(f, top, bottom, begin, end, y.at(0, begin), kStripColumns);
                   done(begin, end - begin);
                 });
}

void integer_forward(Tape& tape, const LinearOperands& w, const QuantizedRows& x, const Tensor& y) {
  const ForwardOperands f = forward_operands(tape, w, x);
  const bool few = x.rows <= kFewRows && w.groups == 1;
  if (!few && w.outputs <= kPanelColumns && x.rows <= kBatchRows) {
    // One piece: threads share its rows, though each decodes it.
    return parallel_shares(x.rows, kWorthAThread / (w.outputs * w.inputs),
                           [&](std::int64_t top, std::int64_t bottom) {
                             forward_piece(f, top, bottom, 0, w.outputs, y.row(top), y.cols());
                           });
  }
  for_each_piece(w.outputs, few ? kRowsOfWeights : kPanelColumns, x.rows, w.inputs,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) {
                   if (!few) {
                     return forward_piece(f, top, bottom, begin, end, y.row(top) + begin, y.cols());
                   }
                   std::array<std::int32_t, kRowsOfWeights> sums;
                   for (std::int64_t r = top; r < bottom; ++r) {
                     dot_rows(w.weight->storage(), begin, end, x.codes + r * x.ld, sums.data());
                     f.finish_rows(sums.data(), kRowsOfWeights, r, 1, begin, end, y.row(r) + begin,
                                   y.cols());
                   }
                 });
}

// ---- dx ----

namespace {

constexpr std::int64_t kPanelsPerBlock = kBlock / kPanelColumns;

// Makes n columns of `rows` rows of dx, from `out` on, of sums of z (trit + 1), rows of kBlock.
void finish_columns(const std::int32_t* sums, const std::int32_t* z_sums, const float* scales,
                    std::int64_t rows, std::int64_t n, float* out, const InputGradient& dx) {
  const std::int64_t ld_dx = dx.place.ld;
  for (std::int64_t top = 0; top < rows; top += kRowsAhead) {
    const std::int64_t count = std::min(kRowsAhead, rows - top);
    const auto rescale = [&](float* to, std::int64_t ld) {
      kernels().products.rescale_sums(to, ld, sums + top * kBlock, kBlock, z_sums + top,
                                      scales + top, count, n);
    };
    if (dx.fresh) {
      prefetch_rows({out, {rows, ld_dx}}, top + kRowsAhead, kRowsAhead, 0, n);
      rescale(out + top * ld_dx, ld_dx);
      continue;
    }
    std::array<float, kRowsAhead * kBlock> share;
    rescale(share.data(), kBlock);
    for (std::int64_t r = 0; r < count; ++r) {
      kernels().reductions.add_scaled(out + (top + r) * ld_dx, share.data() + r * kBlock, 1.0f, n);
    }
  }
}

// dx[top, bottom)[first, last) = scale * sums over all outputs, or added to it; the columns lie in
// one block.
void backward_input_piece(const LinearOperands& w, const QuantizedRows& z,
                          const std::int32_t* z_sums, std::int64_t first, std::int64_t last,
                          std::int64_t top, std::int64_t bottom, const InputGradient& dx) {
  alignas(kAlignment) std::array<std::uint8_t, kPanelsPerBlock * kDepth * kPanelColumns> panels;
  alignas(kAlignment) std::array<std::int32_t, kBatchRows * kBlock> sums;
  const std::int64_t col = first / kBlock * kBlock;
  const std::int64_t count = (last - first + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t rows = bottom - top;
  constexpr std::int64_t kPanelBytes = kDepth * kPanelColumns;
  for (std::int64_t output = 0; output < w.outputs; output += kDepth) {
    const std::int64_t depth = std::min(kDepth, w.outputs - output);
    const std::int64_t below = output + depth;
    pack_down(w.weight->storage(), {output, below, col}, first, last, panels.data(), kPanelBytes);
    const MatrixPiece next = below < w.outputs ? MatrixPiece{below, below + kDepth, col}
                             : last == w.inputs && bottom < dx.place.rows
                                 ? MatrixPiece{0, kDepth, 0}
                             : last % kBlock == 0 ? MatrixPiece{0, kDepth, last}
                                                  : MatrixPiece{};
    PrefetchList ahead = w.weight->storage().memory_of(next, Reading::kValue);
    for (std::int64_t p = 0; p < count; ++p) {
      kernels().products.multiply_panel(
          sums.data() + p * kPanelColumns, kBlock, z.codes + top * z.ld + output, z.ld, rows,
          std::min(kPanelColumns, last - first - p * kPanelColumns),
          panels.data() + p * kPanelBytes, (depth + 3) / 4, PanelRange::kTrits,
          /*add=*/output > 0, ahead.take((kDepth + count - 1) / count));
    }
  }
  for (std::int64_t column = first; column < last;) {
    const std::int64_t end = dx.place.neighbours_end(column, last);
    finish_columns(sums.data() + column - first, z_sums + top, z.scales + top, rows, end - column,
                   dx.place.at(top, column), dx);
    column = end;
  }
}

// Calls body(first, last, top, bottom) for stretches of n columns that lie in one block each, and
// for kBatchRows of `rows`. Threads have as many columns each, to a panel: blocks are too long to
// be dealt out. `depth` is the number of products of bytes in an element.
template <typename Body>
void for_each_stretch(std::int64_t n, std::int64_t rows, std::int64_t depth, const Body& body) {
  const std::int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t passes = (rows + kBatchRows - 1) / kBatchRows;
  const std::int64_t panel_cost =
      kPanelColumns * std::max<std::int64_t>(1, std::min(rows, kBatchRows)) * (depth + kFinishing);
  parallel_shares(
      panels * passes, kWorthAThread / panel_cost, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t top = begin / panels * kBatchRows;
          const std::int64_t panel = begin % panels;
          const std::int64_t last = std::min(
              {panels, panel + end - begin, (panel / kPanelsPerBlock + 1) * kPanelsPerBlock});
          body(panel * kPanelColumns, std::min(n, last * kPanelColumns), top,
               std::min(rows, top + kBatchRows));
          begin += last - panel;
        }
      });
}

}  // namespace

// Groups of inputs have columns of their own.
void integer_backward_input(Tape& tape, const LinearOperands& w, const InputGradient& dx,
                            const ColumnBlocked& dy) {
  const std::int64_t rows = dx.place.rows;
  const float* scales = decode_scales(tape, w);
  float* factors = tape.allocate_scratch<float>(w.outputs);
  auto* z_sums = tape.allocate_scratch<std::int32_t>(rows);
  const QuantizedRows z = allocate_rows(tape, rows, w.outputs, false);
  for (std::int64_t group = 0; group < w.groups; ++group) {
    for (std::int64_t o = 0; o < w.outputs; ++o) factors[o] = scales[o * w.groups + group];
    quantize_rows(z, dy, factors);
    sum_rows(z, z.cols, z_sums);
    const std::int64_t begin = group * w.group_size;
    const std::int64_t end = std::min(w.inputs, begin + w.group_size);
    const std::int64_t block = begin / kBlock * kBlock;  // where the first one begins
    for_each_stretch(
        end - block, rows, w.outputs,
        [&](std::int64_t first, std::int64_t last, std::int64_t top, std::int64_t bottom) {
          if (block + last <= begin) return;
          backward_input_piece(w, z, z_sums, std::max(begin, block + first), block + last, top,
                               bottom, dx);
        });
  }
}

InputGradient input_gradient(Tape& tape, const QuantizedVar& x) {
  const GradientTarget target = tape.target(x.var);
  if (!x.in_strips) return {target.grad, target.fresh};
  return {{x.rows.rows, x.rows.cols, target.grad.data}, target.fresh};
}

// ---- the op ----

Var integer_linear(Tape& tape, const QuantizedVar& x, const LinearOperands& w) {
  check_integers("linear", w);
  check(x.rows.rows <= kMostIntegerRows, "linear: x has shape ", x.shape().str(),
        "; in int8 a batch has at most ", kMostIntegerRows,
        " rows; use a smaller batch or --compute fp32");
  const Var y = tape.variable({x.rows.rows, w.outputs});
  integer_forward(tape, w, x.rows, y.value);
  tape.scratch_reset();
  tape.record(y, {y}, {w.weight, w.scale}, [&tape, w, x, y] {
    const Tensor dy = tape.grad_of(y);
    if (x.wants_grad()) {
      integer_backward_input(tape, w, input_gradient(tape, x), dy);
      tape.scratch_reset();
    }
    integer_backward_weight(tape, w, x.rows, y.value, dy, Share::kWhole);
  });
  return y;
}

}  // namespace tritgrad
