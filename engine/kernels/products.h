// Kernels of matrix products: dense ones in floats, and integer ones of int8 codes and trits.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/memory/prefetch.h"

namespace tritgrad {

// One product C[m x n] = op(A)[m x k] op(B)[k x n] (+ C), row-major with leading dimensions.
struct GemmShape {
  std::int64_t m, n, k;
  bool transpose_a = false;  // A is stored [k x m]
  bool transpose_b = false;  // B is stored [n x k]
  bool accumulate = false;
};

// The longest inner dimension of an integer product: sums of 32 bits hold so many products of an
// int8 and a trit + 1, and some of their kernels no more.
inline constexpr std::int64_t kLongestSum = 8'000'000;

// A panel is one operand of an integer product: up to kPanelColumns columns of numbers plus an
// offset that makes them bytes 0..255, four neighbours of the inner dimension (depth) together.
// Byte j of column c of group g is number 4 g + j of column c, at panel[(64 g + c) 4 + j]; what is
// not there is 0.
inline constexpr std::int64_t kPanelColumns = 64;

// The range of the numbers of a product with a panel, which decides how many products fit 16 bits.
enum class PanelRange {
  kTrits,      // either the other operand holds trits alone, or all bytes are at most 2
  kSevenBits,  // all bytes are at most 127
  kBytes,
};

// The inner dimension of a product with a panel: groups of four numbers, in one piece or in
// several. Each piece of the rows begins a_stride numbers behind the one before, each of the panel
// panel_stride bytes.
struct PanelDepth {
  // Implicit: one piece is a number of groups.
  PanelDepth(std::int64_t groups_) : groups(groups_) {}  // NOLINT(google-explicit-constructor)
  PanelDepth(std::int64_t groups_, std::int64_t pieces_, std::int64_t a_stride_,
             std::int64_t panel_stride_)
      : groups(groups_), pieces(pieces_), a_stride(a_stride_), panel_stride(panel_stride_) {}

  std::int64_t groups;  // of a piece
  std::int64_t pieces = 1;
  std::int64_t a_stride = 0, panel_stride = 0;
};

// Units of the rest of a number that was rounded to int8, in one of its codes: half a code is 127.
inline constexpr std::int32_t kFiner = 254;

struct ProductKernels {
  // The dense product (Eigen), on the calling thread. With m, n <= 256 and any k it needs less than
  // 2 MiB of stack and no heap.
  void (*gemm)(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
               std::int64_t ldb, float* c, std::int64_t ldc);

  // ---- quantising to int8 ----------------------------------------------------------------------
  // codes[i] = x[i] * factors[i] * inverse, one product after the other, clipped to +-127 and
  // rounded to nearest, ties to even. Null factors are ones. NaN may give any code.
  void (*quantize_int8)(std::int8_t* codes, const float* x, const float* factors, float inverse,
                        std::int64_t n);
  // rests[i] is what codes[i] leaves of it: (x[i] * factors[i] * inverse - codes[i]) * kFiner,
  // clipped to +-127 and rounded to nearest. NaN and infinity may give any.
  void (*quantize_rests)(std::int8_t* rests, const std::int8_t* codes, const float* x,
                         const float* factors, float inverse, std::int64_t n);
  // Columns of x become rows of codes: codes[c ld + r] is the code of x[r ld_x + c] factors[r]
  // inverse[c], multiplied and rounded as quantize_int8 does. For r from `rows` to the next
  // multiple of four it is 0.
  void (*quantize_columns)(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                           const float* factors, const float* inverse, std::int64_t rows,
                           std::int64_t columns);
  // Returns the largest magnitude of sums[r ld + i] - corrections[r], each within 31 bits, over
  // `rows` rows of n.
  std::int32_t (*largest_sum)(const std::int32_t* sums, std::int64_t ld,
                              const std::int32_t* corrections, std::int64_t rows, std::int64_t n);
  // Returns the largest magnitude of x[i] * factors[i]; a NaN wins.
  float (*max_abs_product)(const float* x, const float* factors, std::int64_t n);
  // largest[i] = max(largest[i], |factors[r] * x[r ld + i]|) over `rows` rows; a NaN, once there,
  // stays.
  void (*raise_max_abs)(float* largest, const float* x, std::int64_t ld, const float* factors,
                        std::int64_t rows, std::int64_t n);
  bool (*any_negative)(const std::int8_t* x, std::int64_t n);

  // ---- sums and dot products -------------------------------------------------------------------
  // sums[r] = the sum of row r of x, n numbers of it; rows are ld apart.
  void (*sum_int8)(std::int32_t* sums, const std::int8_t* x, std::int64_t ld, std::int64_t rows,
                   std::int64_t n);
  // Returns the sum of a[i] b[i].
  std::int32_t (*dot_int8)(const std::int8_t* a, const std::int8_t* b, std::int64_t n);
  // sums[r] = the sum of (t[i] + 1) x[i] with row r of packed trits t, n of them in blocks of
  // kBlock (engine/formats/format.h), row_bytes apart; x[i] in +-127, n at most kLongestSum.
  // Nothing is read behind the own bytes of the last row.
  void (*dot_packed_trits)(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                           std::int64_t rows, const std::int8_t* x, std::int64_t n);

  // ---- panels ----------------------------------------------------------------------------------
  // Packing: number i of column c is rows[i ld + c] for pack_down, rows[c ld + i] for pack_across.
  void (*pack_down)(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld,
                    std::int64_t depth, std::int64_t columns, int offset);
  void (*pack_across)(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld,
                      std::int64_t depth, std::int64_t columns, int offset);
  // Packed trits (decode_trits) are packed with offset 1, in whole blocks of kBlock
  // (engine/formats/format.h) of rows that are ld_packed apart. pack_trits_down takes `rows` rows,
  // a multiple of four, and writes panels first to last - 1 of the block's columns from `panels`
  // on, ld_panels apart. pack_trits_across takes the block of each of 64 rows, all its depth.
  void (*pack_trits_down)(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                          std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                          std::int64_t last);
  void (*pack_trits_across)(std::uint8_t* panel, const std::uint8_t* packed,
                            std::int64_t ld_packed);
  // Latent codes (latent_to_trits) are packed as their trits with offset 1; rows are ld apart.
  // pack_latents_down takes `rows` rows, a multiple of four, and `columns` columns, a multiple of
  // 64, whose panels are ld_panels apart; pack_latents_across takes 64 rows and makes one panel,
  // whose depth is a multiple of 64.
  void (*pack_latents_down)(std::uint8_t* panels, std::int64_t ld_panels, const std::int8_t* codes,
                            std::int64_t ld, std::int64_t rows, std::int64_t columns,
                            int threshold);
  void (*pack_latents_across)(std::uint8_t* panel, const std::int8_t* codes, std::int64_t ld,
                              std::int64_t depth, int threshold);
  // c[r][0..63] = or, with `add`, += the products of row r of a (4 groups numbers in +-127 of each
  // piece, all of them readable; rows may overlap) with the panel's columns. In columns from
  // `columns` on, c may hold anything afterwards. The memory ahead is asked for by the way.
  void (*multiply_panel)(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                         std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                         const PanelDepth& depth, PanelRange range, bool add,
                         const PrefetchList& ahead);

  // ---- sums to numbers -------------------------------------------------------------------------
  // Row r of out is factors[r] * (sums[r][i] - corrections[r]), or (factors[r] * column_factors[i])
  // times that. Rows are ld_out and ld_sums apart.
  void (*rescale_sums)(float* out, std::int64_t ld_out, const std::int32_t* sums,
                       std::int64_t ld_sums, const std::int32_t* corrections, const float* factors,
                       std::int64_t rows, std::int64_t n);
  void (*rescale_sums_by)(float* out, std::int64_t ld_out, const std::int32_t* sums,
                          std::int64_t ld_sums, const std::int32_t* corrections,
                          const float* factors, const float* column_factors, std::int64_t rows,
                          std::int64_t n);
};

}  // namespace tritgrad
