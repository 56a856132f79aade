#include "ops/products/quantized.h"

#include <algorithm>
#include <array>

#include "engine/kernels/layers.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "engine/memory/prefetch.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kRowsPerUnit = 16;
constexpr std::int64_t kRowsSummed = 64;
// Costs of an element, and of a row of them, in products of bytes.
constexpr std::int64_t kQuantizing = 32, kSumming = 8, kPacking = 16, kQuantizingRow = 4096;
constexpr std::int64_t kCodesRead = 1 << 17;  // that are worth a thread
constexpr std::int64_t kNarrowPiece = 512;    // numbers of narrow rows that are scaled at a time
constexpr std::int64_t kNarrow = 64;  // columns up to which a kernel's call is worth a piece

int offset_for(const QuantizedRows& x) {
  if (x.rectified) return 0;
  const double negative = parallel_sum(
      x.rows, std::max(kRowsPerUnit, kCodesRead / x.ld), [&](std::int64_t begin, std::int64_t end) {
        return kernels().products.any_negative(x.codes + begin * x.ld, (end - begin) * x.ld) ? 1.0
                                                                                             : 0.0;
      });
  return negative > 0.0 ? 128 : 0;
}

// Rows begin at multiples of 4. At distances of 1024 and its multiples many rows would share the
// few places that the caches have for each of them.
std::int64_t leading_dimension(std::int64_t cols) {
  const std::int64_t ld = round_up(cols, 4);
  return ld % 1024 == 0 ? ld + kCacheLine : ld;
}

// Quantises `rows` rows that are too narrow for a kernel each.
void quantize_narrow_rows(const QuantizedRows& q, const ColumnBlocked& x, const float* factors,
                          std::int64_t first, std::int64_t rows) {
  std::array<float, kNarrowPiece> product;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* numbers = x.at(first + r, 0);
    float* to = product.data() + r * q.ld;
    for (std::int64_t i = 0; i < q.cols; ++i) {
      to[i] = factors == nullptr ? numbers[i] : numbers[i] * factors[i];
    }
    const float largest = kernels().reductions.max_abs(to, q.cols);
    const float inverse = inverse_scale(largest);
    for (std::int64_t i = 0; i < q.cols; ++i) to[i] *= inverse;
    std::fill(to + q.cols, to + q.ld, 0.0f);
    q.scales[first + r] = scale_of(largest);
  }
  kernels().products.quantize_int8(q.codes + first * q.ld, product.data(), nullptr, 1.0f,
                                   rows * q.ld);
}

// Columns of a row that are read at a time, while those of a row below are asked for.
constexpr std::int64_t kChunk = 256;
static_assert(kChunk % kStripColumns == 0);
constexpr std::int64_t kFloatBytes = sizeof(float);

// Returns columns [first, last) of a row side by side, and asks for those of the row below.
const float* read_chunk(const ColumnBlocked& x, std::int64_t row, std::int64_t first,
                        std::int64_t last, std::array<float, kChunk>& gathered) {
  if (!x.is_in_strips()) {
    prefetch<Near::kNext>(x.at(row + 1, first), kFloatBytes * (last - first));
    return x.at(row, first);
  }
  for (std::int64_t c = first; c < last; c += kStripColumns) {
    prefetch<Near::kNext>(x.at(row + 1, c), kFloatBytes * kStripColumns);
    std::copy_n(x.at(row, c), kStripColumns, gathered.data() + c - first);
  }
  return gathered.data();
}

void quantize_wide_row(const QuantizedRows& q, const ColumnBlocked& x, const float* factors,
                       std::int64_t row) {
  std::array<float, kChunk> gathered;
  float largest = 0.0f;
  const auto for_each_chunk = [&](const auto& body) {
    for (std::int64_t first = 0; first < q.cols; first += kChunk) {
      const std::int64_t n = std::min(kChunk, q.cols - first);
      body(first, read_chunk(x, row, first, first + n, gathered),
           factors == nullptr ? nullptr : factors + first, n);
    }
  };
  for_each_chunk([&](std::int64_t, const float* numbers, const float* by, std::int64_t n) {
    largest = larger_magnitude(largest, by == nullptr
                                            ? kernels().reductions.max_abs(numbers, n)
                                            : kernels().products.max_abs_product(numbers, by, n));
  });
  std::int8_t* codes = q.codes + row * q.ld;
  const float inverse = inverse_scale(largest);
  for_each_chunk([&](std::int64_t first, const float* numbers, const float* by, std::int64_t n) {
    kernels().products.quantize_int8(codes + first, numbers, by, inverse, n);
  });
  std::fill(codes + q.cols, codes + q.ld, std::int8_t{0});
  q.scales[row] = scale_of(largest);
}

// Quantises `rows` rows of the batch norm of x, from row `top` on, at most kRowsAhead. The norm is
// computed once for their largest magnitudes, once more for the codes.
void quantize_normalized_rows(const QuantizedRows& q, const ColumnBlocked& x,
                              const NormColumns& norm, std::int64_t top, std::int64_t rows) {
  alignas(kAlignment) std::array<float, kRowsAhead * kChunk> y;
  const auto normalize = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t c = first; c < last; c += kStripColumns) {
      kernels().layers.batch_norm(y.data() + c - first, kChunk, x.at(top, c), kStripColumns,
                                  norm.from(c), rows, std::min(kStripColumns, last - c));
    }
  };
  std::array<float, kRowsAhead> largest{};
  for (std::int64_t first = 0; first < q.cols; first += kChunk) {
    const std::int64_t last = std::min(q.cols, first + kChunk);
    for (std::int64_t c = first; c < last; c += kStripColumns) {
      prefetch<Near::kNext>(x.at(top + kRowsAhead, c), kRowsAhead * kStripColumns * kFloatBytes);
    }
    normalize(first, last);
    for (std::int64_t r = 0; r < rows; ++r) {
      float& so_far = largest[static_cast<std::size_t>(r)];
      so_far = larger_magnitude(so_far,
                                kernels().reductions.max_abs(y.data() + r * kChunk, last - first));
    }
  }
  for (std::int64_t first = 0; first < q.cols; first += kChunk) {
    const std::int64_t last = std::min(q.cols, first + kChunk);
    normalize(first, last);
    for (std::int64_t r = 0; r < rows; ++r) {
      kernels().products.quantize_int8(q.codes + (top + r) * q.ld + first, y.data() + r * kChunk,
                                       nullptr, inverse_scale(largest[static_cast<std::size_t>(r)]),
                                       last - first);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int8_t* codes = q.codes + (top + r) * q.ld;
    std::fill(codes + q.cols, codes + q.ld, std::int8_t{0});
    q.scales[top + r] = scale_of(largest[static_cast<std::size_t>(r)]);
  }
}

}  // namespace

QuantizedRows allocate_rows(Tape& tape, std::int64_t rows, std::int64_t cols, bool keep) {
  const std::int64_t ld = leading_dimension(cols);
  if (keep)
    return {rows, cols, ld, tape.allocate<std::int8_t>(rows * ld), tape.allocate<float>(rows)};
  return {rows, cols, ld, tape.allocate_scratch<std::int8_t>(rows * ld),
          tape.allocate_scratch<float>(rows)};
}

void quantize_rows(const QuantizedRows& q, const ColumnBlocked& x, const float* factors) {
  const std::int64_t together = x.is_in_strips() || q.ld > kNarrow ? 1 : kNarrowPiece / q.ld;
  parallel_pieces(q.rows, std::max(kRowsPerUnit, together), kQuantizing * q.cols + kQuantizingRow,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; row += together) {
                      if (together < 2) {
                        quantize_wide_row(q, x, factors, row);
                      } else {
                        quantize_narrow_rows(q, x, factors, row, std::min(together, end - row));
                      }
                    }
                  });
}

void quantize_rows(const QuantizedRows& q, const ColumnBlocked& x, const NormColumns& norm) {
  parallel_pieces(q.rows, kRowsAhead, kQuantizing * q.cols,
                  [&](std::int64_t top, std::int64_t bottom) {
                    quantize_normalized_rows(q, x, norm, top, bottom - top);
                  });
}

QuantizedVar quantize(Tape& tape, const Var& x) {
  const QuantizedRows rows = allocate_rows(tape, x.value.rows(), x.value.cols(), true);
  quantize_rows(rows, x.value, nullptr);
  return {x, rows};
}

void sum_rows(const QuantizedRows& x, std::int64_t group_size, std::int32_t* sums) {
  const std::int64_t groups = (x.cols + group_size - 1) / group_size;
  parallel_pieces(
      x.rows, kRowsSummed, kSumming * x.cols, [&](std::int64_t begin, std::int64_t end) {
        if (groups == 1) {
          return kernels().products.sum_int8(sums + begin, x.codes + begin * x.ld, x.ld,
                                             end - begin, x.cols);
        }
        for (std::int64_t r = begin; r < end; ++r) {
          for (std::int64_t g = 0; g < groups; ++g) {
            kernels().products.sum_int8(sums + r * groups + g, x.codes + r * x.ld + g * group_size,
                                        x.ld, 1, std::min(group_size, x.cols - g * group_size));
          }
        }
      });
}

namespace {

// Sets the scale of a column with this largest magnitude and returns its inverse. The zeros behind
// a column's codes are written here, as the kernel only fills up fours and there may be a cache
// line more.
float start_column(const QuantizedRows& q, std::int64_t column, float largest) {
  q.scales[column] = scale_of(largest);
  std::fill(q.codes + column * q.ld + q.cols, q.codes + (column + 1) * q.ld, std::int8_t{0});
  return inverse_scale(largest);
}

// The codes of columns as they come about.
struct ColumnCodes {
  Tensor x;
  QuantizedRows q;
  const float* factors;
  float* inverse;

  void raise(float* largest, std::int64_t row, std::int64_t begin, std::int64_t n) const {
    prefetch_after(x, row, begin, n);
    kernels().products.raise_max_abs(largest, x.row(row) + begin, 0, factors + row, 1, n);
  }
  void write(std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom) const {
    kernels().products.quantize_columns(q.codes + begin * q.ld + top, q.ld, x.row(top) + begin,
                                        x.cols(), factors + top, inverse + begin, bottom - top,
                                        end - begin);
  }
};

void quantize_whole_columns(const ColumnCodes& codes) {
  for_each_column_piece(codes.x, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kLongestPiece> largest{};
    for (std::int64_t row = 0; row < codes.x.rows(); ++row) {
      codes.raise(largest.data(), row, begin, end - begin);
    }
    for (std::int64_t c = begin; c < end; ++c) {
      codes.inverse[c] = start_column(codes.q, c, largest[static_cast<std::size_t>(c - begin)]);
    }
    codes.write(begin, end, 0, codes.x.rows());
  });
}

void quantize_columns_in_pieces(Tape& tape, const Wide& narrow, const ColumnCodes& codes) {
  const Tensor& x = codes.x;
  const std::int64_t pieces = pieces_down(x);
  float* largest = tape.allocate_scratch<float>(pieces * x.cols());
  std::fill_n(largest, pieces * x.cols(), 0.0f);
  for_each_piece(narrow, x,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                     std::int64_t piece) {
                   for (std::int64_t row = top; row < bottom; ++row) {
                     codes.raise(largest + piece * x.cols() + begin, row, begin, end - begin);
                   }
                 });
  for (std::int64_t c = 0; c < x.cols(); ++c) {
    float most = 0.0f;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      most = larger_magnitude(most, largest[piece * x.cols() + c]);
    }
    codes.inverse[c] = start_column(codes.q, c, most);
  }
  for_each_piece(narrow, x,
                 [&](std::int64_t begin, std::int64_t end, std::int64_t top, std::int64_t bottom,
                     std::int64_t) { codes.write(begin, end, top, bottom); });
}

}  // namespace

QuantizedRows quantize_columns(Tape& tape, const Tensor& x, const float* factors) {
  const QuantizedRows q = allocate_rows(tape, x.cols(), x.rows(), false);
  const ColumnCodes codes{x, q, factors, tape.allocate_scratch<float>(x.cols())};
  const Wide narrow(x, 1);  // each row has a factor of its own
  if (columns_are_whole(narrow, x)) {
    quantize_whole_columns(codes);
  } else {
    quantize_columns_in_pieces(tape, narrow, codes);
  }
  return q;
}

void quantize_strip(const QuantizedRows& q, std::int64_t first, const float* strip,
                    const float* factors, std::int64_t n) {
  std::array<float, kStripColumns> largest{}, inverse;
  kernels().products.raise_max_abs(largest.data(), strip, kStripColumns, factors, q.cols, n);
  for (std::int64_t c = 0; c < n; ++c) {
    const auto at = static_cast<std::size_t>(c);
    inverse[at] = start_column(q, first + c, largest[at]);
  }
  kernels().products.quantize_columns(q.codes + first * q.ld, q.ld, strip, kStripColumns, factors,
                                      inverse.data(), q.cols, n);
}

Panels pack_columns(Tape& tape, const QuantizedRows& x) {
  const std::int64_t count = (x.cols + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t groups = (x.rows + 3) / 4;
  const Panels panels{tape.allocate_scratch<std::uint8_t>(count * groups * 4 * kPanelColumns),
                      groups, offset_for(x)};
  parallel_pieces(
      count, 1, kPacking * kPanelColumns * 4 * groups, [&](std::int64_t p, std::int64_t) {
        const std::int64_t first = p * kPanelColumns;
        kernels().products.pack_down(panels.at(p, 0), x.codes + first, x.ld, x.rows,
                                     std::min(kPanelColumns, x.cols - first), panels.offset);
      });
  return panels;
}

}  // namespace tritgrad
