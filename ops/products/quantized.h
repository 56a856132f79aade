// Rows of int8 numbers with a scale each, and panels of them, for products in integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/kernels/layers.h"
#include "engine/kernels/products.h"
#include "engine/memory/parallel.h"
#include "engine/tape.h"
#include "ops/products/column_blocked.h"

namespace tritgrad {

// Products of bytes that are worth a thread, which small layers are not.
inline constexpr std::int64_t kWorthAThread = 1 << 19;

// Calls body(begin, end) for pieces of `grain` of [0, n), as many pieces to a unit as are worth a
// thread. `cost` is that of one of n, in products of bytes.
template <typename Body>
void parallel_pieces(std::int64_t n, std::int64_t grain, std::int64_t cost, const Body& body) {
  const std::int64_t pieces = kWorthAThread / std::max<std::int64_t>(1, grain * cost);
  parallel_ranges(n, grain * std::max<std::int64_t>(1, pieces),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; i += grain) {
                      body(i, std::min(end, i + grain));
                    }
                  });
}

inline constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// The factor that makes codes of numbers with this largest magnitude, and the scale that makes
// numbers of codes. Both are 0 where the inverse would overflow.
inline constexpr int kLargestCode = 127;
inline float inverse_scale(float largest) {
  return largest < 0x1p-100f ? 0.0f : kLargestCode / largest;
}
inline float scale_of(float largest) { return largest < 0x1p-100f ? 0.0f : largest / kLargestCode; }

// Returns the larger of two magnitudes; NaN is larger than everything.
inline float larger_magnitude(float a, float b) {
  return std::bit_cast<float>(
      std::max(std::bit_cast<std::int32_t>(a), std::bit_cast<std::int32_t>(b)));
}

// x[r][i] is about scales[r] * codes[r ld + i]; codes are in +-127, those from `cols` to `ld` (a
// multiple of 4) are 0. The scale of a row that is not finite is not finite either.
struct QuantizedRows {
  std::int64_t rows, cols, ld;
  std::int8_t* codes;
  float* scales;
  bool rectified = false;  // no code of a finite row is negative; otherwise some may be
};

// Takes memory for x [rows, cols] in the tape's arena, until the tape is reset, or in its scratch.
QuantizedRows allocate_rows(Tape& tape, std::int64_t rows, std::int64_t cols, bool keep);

// An activation as int8 rows, for layers in integers: only products in integers read it and add to
// its gradient.
struct QuantizedVar {
  Var var;  // for its gradient, of the shape of the rows or of strips; there may be no value
  QuantizedRows rows;
  bool in_strips = false;  // the gradient

  Shape shape() const { return {rows.rows, rows.cols}; }
  bool wants_grad() const { return var.wants_grad(); }
};
// Rounds rows of x by their absmax / 127, to nearest. The gradient is x's own (straight through);
// its value is not read any more.
QuantizedVar quantize(Tape& tape, const Var& x);

// Fills `q` from rows of x, each element times factors[column] first (null: 1), by their absmax /
// 127; to nearest.
void quantize_rows(const QuantizedRows& q, const ColumnBlocked& x, const float* factors);
// Fills `q` from rows of the batch norm of x in strips, which is not kept.
void quantize_rows(const QuantizedRows& q, const ColumnBlocked& x, const NormColumns& norm);

// sums [rows x groups] of the codes of group_size neighbours in a row; the last group may be
// shorter.
void sum_rows(const QuantizedRows& x, std::int64_t group_size, std::int32_t* sums);

// Returns columns of x, each element times factors[row] first, as rows: x^T.
QuantizedRows quantize_columns(Tape& tape, const Tensor& x, const float* factors);
// Fills in the codes of columns [first, first + n) alone, at most 64, from a strip of them.
void quantize_strip(const QuantizedRows& q, std::int64_t first, const float* strip,
                    const float* factors, std::int64_t n);

// All of a matrix in panels of 64 columns: kernels().products.multiply_panel reads panel p from
// group g on at at(p, g). Bytes are codes + offset; what is never negative, as behind a rectifier,
// needs none.
struct Panels {
  std::uint8_t* bytes;
  std::int64_t groups;  // of one panel
  int offset;           // 128 or 0
  PanelRange range() const { return offset == 0 ? PanelRange::kSevenBits : PanelRange::kBytes; }
  std::uint8_t* at(std::int64_t panel, std::int64_t group) const {
    return bytes + (panel * groups + group) * 4 * kPanelColumns;
  }
};
// Packs x: columns of the panels are x's, the inner dimension is its rows.
Panels pack_columns(Tape& tape, const QuantizedRows& x);

}  // namespace tritgrad
