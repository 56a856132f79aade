// The seam between the engine and the instruction sets: one table of plain functions on raw
// pointers.
//
// The scalar reference (ops/kernels/reference*.cpp) is the specification. Every other table is
// compiled from one source per idea with the flags of one instruction set and is chosen once at
// start: the best one that this processor and its operating system support, lowered (never raised)
// by the environment variable TRITGRAD_ISA = reference | avx2 | avx512 | avx512vnni | avx512vbmi |
// avx512amx.
//
// All kernels but `gemm` give the same bits on every instruction set (no fused multiply-add but of
// exact operations, sums in kSumLanes interleaved lanes); only the payload of a NaN that float
// arithmetic makes is left open. `gemm` gives the same bits for any thread count and any place in
// memory on one instruction set. Pointers need no alignment; n may be anything from 0 up.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "engine/formats/flips.h"
#include "engine/kernels/direction.h"
#include "engine/kernels/kernel_arguments.h"
#include "engine/memory/memory_ahead.h"
#include "engine/random.h"

namespace tritgrad {

// Numbers of the inner dimension of an integer product, at most: sums of 32 bits hold so many
// products of an int8 and a trit + 1, and some of their kernels no more.
constexpr std::int64_t kLongestSum = 8'000'000;

struct KernelTable {
  const char* name;  // as TRITGRAD_ISA has it

  // ---- dense products (Eigen) ------------------------------------------------------------------
  // On the calling thread. With m, n <= 256 and any k it needs less than 2 MiB of stack and no
  // heap.
  void (*gemm)(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
               std::int64_t ldb, float* c, std::int64_t ldc);

  // ---- integer products ------------------------------------------------------------------------
  // codes[i] = x[i] * factors[i] * inverse, one product after the other, clipped to +-127 and
  // rounded to nearest, ties to even. No factors, null, are ones. Any code for NaN.
  void (*quantize_int8)(std::int8_t* codes, const float* x, const float* factors, float inverse,
                        std::int64_t n);
  // The largest magnitude of x[i] * factors[i]; a NaN wins.
  float (*max_abs_product)(const float* x, const float* factors, std::int64_t n);
  // Columns of x as rows of codes: codes[c ld + r] is the code of x[r ld_x + c] factors[r]
  // inverse[c] (one product after the other), as quantize_int8 rounds. For r from `rows` to the
  // next multiple of four it is 0.
  void (*quantize_columns)(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                           const float* factors, const float* inverse, std::int64_t rows,
                           std::int64_t columns);
  // sums[r] = the sum of row r of x, n numbers of it; rows are ld apart.
  void (*sum_int8)(std::int32_t* sums, const std::int8_t* x, std::int64_t ld, std::int64_t rows,
                   std::int64_t n);
  // The sum of a[i] b[i].
  std::int32_t (*dot_int8)(const std::int8_t* a, const std::int8_t* b, std::int64_t n);
  // sums[r] = the sum of (t[i] + 1) x[i] with row r of packed trits t, n of them in blocks of
  // kBlock (engine/formats/format.h), row_bytes apart; x[i] in +-127, n at most kLongestSum. Behind
  // the own bytes of the last row nothing is read.
  void (*dot_packed_trits)(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                           std::int64_t rows, const std::int8_t* x, std::int64_t n);
  bool (*any_negative)(const std::int8_t* x, std::int64_t n);
  // largest[i] = max(largest[i], |factors[r] * x[r ld + i]|) over `rows` rows; a NaN, once there,
  // stays.
  void (*raise_max_abs)(float* largest, const float* x, std::int64_t ld, const float* factors,
                        std::int64_t rows, std::int64_t n);
  // A panel is one operand of a product, up to 64 columns of numbers plus an offset that makes them
  // bytes 0..255, four neighbours of the inner dimension (depth) together: byte j of column c of
  // group g is number 4 g + j of column c, at panel[(64 g + c) 4 + j]. What is not there is 0.
  // pack_down: number i of column c is rows[i ld + c]. pack_across: it is rows[c ld + i].
  void (*pack_down)(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld,
                    std::int64_t depth, std::int64_t columns, int offset);
  void (*pack_across)(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld,
                      std::int64_t depth, std::int64_t columns, int offset);
  // The same of packed trits (decode_trits), offset 1, in whole blocks of kBlock
  // (engine/formats/format.h) of rows that are ld_packed apart. pack_trits_down: of `rows` rows, a
  // multiple of four, panels first to last - 1 of the block's columns, which go to `panels` on,
  // ld_panels apart. pack_trits_across: the block of each of 64 rows, all its depth.
  void (*pack_trits_down)(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                          std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                          std::int64_t last);
  void (*pack_trits_across)(std::uint8_t* panel, const std::uint8_t* packed,
                            std::int64_t ld_packed);
  // Of latent codes (latent_to_trits), rows ld apart: of `rows` rows, a multiple of four, and
  // `columns` columns, a multiple of 64, panels ld_panels apart; of 64 rows, one panel whose depth
  // is a multiple of 64.
  void (*pack_latents_down)(std::uint8_t* panels, std::int64_t ld_panels, const std::int8_t* codes,
                            std::int64_t ld, std::int64_t rows, std::int64_t columns,
                            int threshold);
  void (*pack_latents_across)(std::uint8_t* panel, const std::int8_t* codes, std::int64_t ld,
                              std::int64_t depth, int threshold);
  // c[r][0..63] = or, with `add`, += the products of row r of a (4 groups numbers in +-127, all of
  // them readable) with the panel's columns. Of columns from `columns` on, c may hold anything
  // afterwards. Asks for the memory ahead by the way.
  void (*multiply_panel)(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                         std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                         std::int64_t groups, PanelRange range, bool add, const MemoryAhead& ahead);

  // Sums to numbers, row r of out: factors[r] * (sums[r][i] - corrections[r]), or
  // (factors[r] * column_factors[i]) times that. Rows are ld_out and ld_sums apart.
  void (*rescale_sums)(float* out, std::int64_t ld_out, const std::int32_t* sums,
                       std::int64_t ld_sums, const std::int32_t* corrections, const float* factors,
                       std::int64_t rows, std::int64_t n);
  void (*rescale_sums_by)(float* out, std::int64_t ld_out, const std::int32_t* sums,
                          std::int64_t ld_sums, const std::int32_t* corrections,
                          const float* factors, const float* column_factors, std::int64_t rows,
                          std::int64_t n);

  // ---- random bits -----------------------------------------------------------------------------
  // out[i] = random_u16(key, first + i); first is a multiple of 8.
  void (*random_u16)(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first);

  // ---- formats: number codecs ------------------------------------------------------------------
  // Packed trits, five to a byte, in stripes: with b = ceil(n / 5), element i is digit i / b of
  // byte i % b; a byte is sum_k (t_k + 1) 3^k, in 0..242. Digits beyond n are written as zero
  // trits; a byte above 242 reads as 242, so that no input gives anything but trits.
  // Decodes rows of n trits: their bytes begin ld_packed apart, the trits ld apart.
  void (*decode_trits)(std::int8_t* trits, std::int64_t ld, const std::uint8_t* packed,
                       std::int64_t ld_packed, std::int64_t rows, std::int64_t n);
  void (*encode_trits)(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n);
  void (*trits_to_float)(float* out, const std::int8_t* trits, std::int64_t n);
  // Latent codes: out = the nearest trit, (c > threshold) - (c < -threshold).
  void (*latent_to_trits)(std::int8_t* trits, const std::int8_t* codes, int threshold,
                          std::int64_t n);
  void (*latent_to_float)(float* out, const std::int8_t* codes, int threshold, std::int64_t n);
  void (*bf16_to_float)(float* out, const std::uint16_t* in, std::int64_t n);
  // noise == nullptr: to nearest, ties to even. Otherwise stochastic: noise (16 bits) is added to
  // the dropped bits. NaN stays NaN (quiet), infinities stay.
  void (*float_to_bf16)(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                        std::int64_t n);

  // Split numbers: `value` is the nearest bf16 number (ties to even) of the master, `correction`
  // the rest, in 127ths (split8) or 32767ths (split16) of half the way to the next bf16 number on
  // its side: master = value + correction / N * half the way, rounded once to fp32. Corrections are
  // rounded to nearest, or by 16 bits of noise: up if and only if fraction + noise / 65536 >= 1.
  // Whatever decode gives, encode turns into the same bytes, noise or not. Magnitudes half-way or
  // more above the largest bf16 number saturate; infinities and NaN (quiet) have correction 0, and
  // decode reads them without it.
  void (*encode_split8)(std::uint16_t* value, std::int8_t* correction, const float* in,
                        const std::uint16_t* noise, std::int64_t n);
  void (*decode_split8)(float* out, const std::uint16_t* value, const std::int8_t* correction,
                        std::int64_t n);
  void (*encode_split16)(std::uint16_t* value, std::int16_t* correction, const float* in,
                         std::int64_t n);
  void (*decode_split16)(float* out, const std::uint16_t* value, const std::int16_t* correction,
                         std::int64_t n);

  // Companded numbers: groups of kCompandedGroup (the last one may be shorter) under a scale of 16
  // bits, those of an fp32 number from bit 30 down. companded: signed codes -127..127, x = scale *
  // z / (2 - |z|) with z = code / 127. root: codes 0..255, x = scale * (code / 255)^2. The scale is
  // the group's largest magnitude, rounded to nearest or by noise (one number per group); codes are
  // rounded to the nearest integer (ties to even) or by noise (one per element; both or neither may
  // be null): with fraction the position between the decoded neighbours, up if and only if fraction
  // >= (noise + 0.5) / 65536. Whatever decode gives, encode turns into the same bytes, noise or
  // not. root: a positive number never has code 0. A group that holds an infinity, a NaN or, with
  // root, a negative number becomes NaN as a whole (scale 0xFF80, codes 0).
  void (*encode_companded)(std::int8_t* codes, std::uint16_t* scales, const float* in,
                           const std::uint16_t* noise, const std::uint16_t* scale_noise,
                           std::int64_t n);
  void (*decode_companded)(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                           std::int64_t n);
  void (*encode_root)(std::uint8_t* codes, std::uint16_t* scales, const float* in,
                      const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n);
  void (*decode_root)(float* out, const std::uint8_t* codes, const std::uint16_t* scales,
                      std::int64_t n);

  // ---- formats: few bits -----------------------------------------------------------------------
  // Signed codes of `bits` = 4, 5 or 6 bits as u = code + 2^(bits - 1), in stripes. First the low
  // nibbles: with h = ceil(n / 2), byte j holds elements j (low half) and j + h. Then the bits
  // above, if any: with w = bits - 4 and s = ceil(n w / 8), byte j holds element j + k s at bit
  // k w. Bits beyond n are 0. Writing and reading clip codes to +-max_code.
  void (*pack_codes)(std::uint8_t* packed, const std::int8_t* codes, int bits, int max_code,
                     std::int64_t n);
  void (*unpack_codes)(std::int8_t* codes, const std::uint8_t* packed, int bits, int max_code,
                       std::int64_t n);
  // Groups of 32 codes in +-max_code (7 or 127) with a bf16 scale each: out = code * scale.
  // Nearest (noise == nullptr; ties to even): the scale is the bf16 nearest to absmax / max_code,
  // so that absmax gets the code max_code exactly, and encoding what was decoded changes nothing.
  // Stochastic: floor(x / scale + u), u = (noise + 0.5) / 65536, with the scale rounded up, so that
  // nothing is clipped and the expectation is right. A group below max_code * 2^-126 becomes zeros
  // with scale 0. Infinity counts as the largest float, NaN as 0; reading clips codes.
  void (*encode_groups)(std::int8_t* codes, std::uint16_t* scales, const float* x, int max_code,
                        const std::uint16_t* noise, std::int64_t n);
  void (*decode_groups)(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                        int max_code, std::int64_t n);
  // fp8 e4m3fn (bias 7, up to 448, subnormals of 2^-9, no infinity, NaN 0x7F and 0xFF) with one
  // bf16 scale for all n, chosen like those of groups with 448 as the largest code. Stochastic
  // rounding adds the noise to the dropped bits of the mantissa. NaN stays NaN and has no part in
  // the scale.
  void (*encode_fp8)(std::uint8_t* codes, std::uint16_t* scale, const float* x,
                     const std::uint16_t* noise, std::int64_t n);
  void (*decode_fp8)(float* out, const std::uint8_t* codes, std::uint16_t scale, std::int64_t n);

  // ternary_master: gamma, 0 or -gamma, what is nearest to each master (0 for half of gamma); NaN
  // where that or gamma is not finite. gamma >= 2^-125, so that half of it is exact.
  void (*decode_ternary_master)(float* out, const float* master, float gamma, std::int64_t n);

  // ---- formats: updates ------------------------------------------------------------------------
  // w[i] -= lr * direction[i]
  void (*descend)(float* w, const float* direction, float lr, std::int64_t n);
  // descend() of masters; returns how many values of decode_ternary_master() change, of
  // those that are numbers.
  std::int64_t (*descend_ternary_master)(float* master, const float* direction, float lr,
                                         float gamma, std::int64_t n);
  void (*quantize_levels)(std::int16_t* levels, const Direction& direction,
                          const LevelRounding& rounding, std::int64_t n);
  // engine/formats/flips.h, accumulate(), of a direction's levels on separate trits and
  // accumulators. Those of the rows are `ld` and `ld_a` apart, or share one row of each where that
  // is 0. counts: of each row.
  void (*descend_ternary)(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                          std::int8_t* accumulators, std::int64_t ld_a, const DirectionRows& rows,
                          const FlipPolicy& policy);
  // engine/formats/shared_accumulator.h, update_shared(), of the levels of n neighbours, every
  // `sharing` (4, 8 or 16) of which share a byte; limits <= shared_threshold(sharing), 0 <= turn <
  // sharing.
  void (*descend_shared)(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                         std::int8_t* shared, std::int64_t ld_shared, const DirectionRows& rows,
                         int sharing, int turn);
  // descend_ternary (carry, step one trit) on codes c = K T + A, K = 2 threshold + 1; 0 <=
  // threshold <= 42, limits <= 127.
  FlipCounts (*descend_latent)(std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                               int threshold, int hysteresis);

  // ---- update rules: no two arrays overlap -----------------------------------------------------
  // m, v <- their moving averages; direction = m^ / (sqrt(v^) + eps) + weight_decay * master.
  void (*adamw)(float* direction, float* m, float* v, const float* grad, const float* master,
                const AdamwConstants& constants, std::int64_t n);

  // out[i] += factor * x[i]
  void (*add_scaled)(float* out, const float* x, float factor, std::int64_t n);
  // m <- momentum m + fresh g; direction = m, or g + momentum m with nesterov.
  void (*sgd)(float* direction, float* m, const float* grad, float momentum, float fresh,
              bool nesterov, std::int64_t n);
  // direction = sign(g); 0 for zeros, infinities and NaN.
  void (*sign)(float* direction, const float* grad, std::int64_t n);
  // direction = sign(beta1 m + (1 - beta1) g), as above; m <- beta2 m + (1 - beta2) g.
  void (*lion)(float* direction, float* m, const float* grad, const LionConstants& constants,
               std::int64_t n);
  // direction = g (1 / sqrt(v inverse_bias)), 0 where that root is not positive; then v <- beta v +
  // (1 - beta) g^2.
  void (*normalized)(float* direction, float* v, const float* grad, float beta,
                     float one_minus_beta, float inverse_bias, std::int64_t n);
  // direction = rate direction / (sqrt(squares) + eps); 0 stays 0.
  void (*divide_by_roots)(float* direction, const float* squares, float rate, float eps,
                          std::int64_t n);
  // gain = d direction / d m of adamw, with v after the update.
  void (*adam_gain)(float* gain, const float* v, float inverse_bias1, float inverse_bias2,
                    float eps, std::int64_t n);
  // momentum <- rescale (momentum + alpha (wanted - stored) / gain); gain null: 1.
  void (*carry_error)(float* momentum, const float* wanted, const float* stored, const float* gain,
                      float alpha, float rescale, std::int64_t n);
  // descend and carry_error on trits. wanted = trit - lr direction within +-1.5, 0 for NaN; stored,
  // the new trit: that nearest to it (a half: 0), or floor(wanted + (noise + 0.5) / 65536) within
  // +-1. Returns how many trits have changed.
  std::int64_t (*carry_trits)(std::int8_t* trits, float* momentum, const float* direction,
                              const float* gain, const CarryConstants& constants,
                              const std::uint16_t* noise, std::int64_t n);

  // MicroAdam. x[i] within +-limit; NaN becomes 0.
  void (*limit)(float* x, float limit, std::int64_t n);
  // How many x have a magnitude whose bits are at least `bits`; their indices in rising order.
  std::int64_t (*count_at_least)(const float* x, std::uint32_t bits, std::int64_t n);
  std::int64_t (*find_at_least)(std::uint16_t* index, const float* x, std::uint32_t bits,
                                std::int64_t n);
  // Smallest and largest of n > 0 finite numbers; -0 counts as 0.
  void (*find_range)(float* low, float* high, const float* x, std::int64_t n);
  // levels[i] = min((x[i] - low) * inverse + r, most), cut to an integer; r = 1/2, or (noise[i] +
  // 0.5) / 65536. No x is below low, most < 256. And back: out[i] += low + levels[i] * unit.
  void (*quantize_feedback)(std::uint8_t* levels, const float* x, float low, float inverse,
                            float most, const std::uint16_t* noise, std::int64_t n);
  void (*add_feedback)(float* out, const std::uint8_t* levels, float low, float unit,
                       std::int64_t n);

  // Whole updates in one pass: what decoding, the rule, descend() and encoding give for n elements,
  // to the bit, but for the sign of a weight that is zero. False, with nothing written, where they
  // cannot: n above kMostFlashElements or no multiple of kFlashStep; a number among them that takes
  // special care (infinities, NaN, magnitudes at either end of the range); or no such pass on this
  // instruction set.
  bool (*flash_adamw)(const FlashElements& at, const AdamwConstants& constants, float lr,
                      std::int64_t n);
  bool (*flash_lion)(const FlashElements& at, const LionConstants& constants, float weight_decay,
                     float lr, std::int64_t n);
  bool (*flash_sgd)(const FlashElements& at, const SgdConstants& constants, float lr,
                    std::int64_t n);

  // ---- layers ----------------------------------------------------------------------------------
  // No two arrays overlap.
  // out[i] = max(x[i], 0); NaN stays.
  void (*relu)(float* out, const float* x, std::int64_t n);
  // dy[i] *= (y[i] > 0), with y before or after the rectifier
  void (*rectify_gradient)(float* dy, const float* y, std::int64_t n);
  // out[i] = max(x[i], 0)^2; NaN stays. dy[i] *= 2 max(x[i], 0)
  void (*squared_relu)(float* out, const float* x, std::int64_t n);
  void (*squared_relu_gradient)(float* dy, const float* x, std::int64_t n);
  // out[i] = tanh(x[i]) within 3.5 units of 2^-24 of it; NaN stays. dy[i] *= 1 - y[i]^2
  void (*tanh)(float* out, const float* x, std::int64_t n);
  void (*tanh_gradient)(float* dy, const float* y, std::int64_t n);
  // Down n columns of `rows` rows, `ld` apart in all arrays where none has its own.
  // Sums, a row after the other: sums[i] += x[i], (x[i] - means[i])^2, a[i] b[i].
  void (*add_to_sums)(double* sums, const float* x, std::int64_t ld, std::int64_t rows,
                      std::int64_t n);
  void (*add_squares_around)(double* sums, const float* x, std::int64_t ld, const double* means,
                             std::int64_t rows, std::int64_t n);
  void (*add_products)(double* sums, const float* a, const float* b, std::int64_t ld,
                       std::int64_t rows, std::int64_t n);
  // With z = (x - mean) * inverse_std and u = z * gain + bias, each operation rounded to float:
  // y[i] = u, or max(u, 0) where NaN stays
  void (*batch_norm)(float* y, std::int64_t ld_y, const float* x, std::int64_t ld_x,
                     const NormColumns& columns, std::int64_t rows, std::int64_t n);
  // where rectified, dy[i] *= (u > 0); then sum_dy[i] += dy[i], sum_dy_z[i] += dy[i] z
  void (*add_batch_norm_sums)(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                              std::int64_t ld, const NormColumns& columns, std::int64_t rows,
                              std::int64_t n);
  // dy[i] = factor[i] * (dy[i] - mean_dy[i] - z * mean_dy_z[i])
  void (*batch_norm_gradient)(float* dy, const float* x, std::int64_t ld,
                              const NormColumns& columns, const float* factor, const float* mean_dy,
                              const float* mean_dy_z, std::int64_t rows, std::int64_t n);
  // Layer norm and RMS norm of one row, with z = (x - mean) * inverse_std and dz = gain * dy, each
  // operation rounded to float:
  // y[i] = z * gain[i] + bias[i], or without a bias where that is null
  void (*row_norm)(float* y, const float* x, const RowNorm& norm, const float* bias,
                   std::int64_t n);
  // dgain[i] += dy[i] z; dbias[i] += dy[i] unless null
  void (*add_row_norm_gradients)(float* dgain, float* dbias, const float* dy, const float* x,
                                 const RowNorm& norm, std::int64_t n);
  // dy[i] = inverse_std * (dz - mean_dz - z mean_dz_z)
  void (*row_norm_gradient)(float* dy, const float* x, const RowNorm& norm, float mean_dz,
                            float mean_dz_z, std::int64_t n);
  void (*bytes_to_float)(float* out, const std::uint8_t* x, std::int64_t n);
  // x[i] <- sqrt(x[i]), rounded correctly
  void (*square_roots)(float* x, std::int64_t n);
  // x[i] <- (x[i] - mean) * inverse_std in double, then within +-the largest float; NaN stays. Mean
  // and inverse_std are those of column i, or mean[0] and inverse_std[0] for all columns.
  void (*standardize_features)(float* x, const float* mean, const float* inverse_std,
                               bool one_for_all, std::int64_t n);
  // One line of y, `width` pixels of `channels` numbers, from two of x, twice as long: the largest
  // of 2 x 2 pixels. NaN wins. `winners`, unless null: which of the four it was, the first of
  // equals: 1 upper left, 2 upper right, 4 lower left, 8 lower right; 0 for NaN.
  void (*max_pool)(float* y, std::int32_t* winners, const float* above, const float* below,
                   std::int64_t width, std::int64_t channels);
  // Adds dy to that one of the four pixels of x that won; where NaN did, to none.
  void (*max_pool_gradient)(float* dabove, float* dbelow, const std::int32_t* winners,
                            const float* dy, std::int64_t width, std::int64_t channels);

  // ---- reductions ------------------------------------------------------------------------------
  bool (*all_finite)(const float* x, std::int64_t n);
  bool (*all_finite_bf16)(const std::uint16_t* x, std::int64_t n);
  // Largest magnitude; NaN counts as larger than everything. 0 for n = 0.
  float (*max_abs)(const float* x, std::int64_t n);
  // Sums in double; see kSumLanes.
  double (*sum)(const float* x, std::int64_t n);
  double (*sum_of_magnitudes)(const float* x, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  // Of (x[i] - mean)^2, in double.
  double (*sum_of_squares_around)(const float* x, double mean, std::int64_t n);
  // Of dz, and of dz times z, of row_norm.
  RowNormSums (*row_norm_sums)(const float* dy, const float* x, const RowNorm& norm,
                               std::int64_t n);
  // The sum of (sums[i] - correction)^2, exactly, as long as it is below 2^63. The differences fit
  // an int32.
  std::int64_t (*sum_of_squared_sums)(const std::int32_t* sums, std::int32_t correction,
                                      std::int64_t n);
};

// The table in use, null before the first one.
inline std::atomic<const KernelTable*> kernels_in_use{nullptr};
const KernelTable& choose_kernels_at_start();
inline const KernelTable& kernels() {
  const KernelTable* table = kernels_in_use.load(std::memory_order_acquire);
  return table != nullptr ? *table : choose_kernels_at_start();
}

// All tables that this machine can run, from the reference to the best; avx512amx not where
// TRITGRAD_ISA is below it, as the process must ask the operating system for its state.
std::span<const KernelTable* const> supported_kernels();

// Makes kernels() return the table of that name; for tests. Throws Error for a name that this
// machine cannot run.
void use_kernels(const char* name);

}  // namespace tritgrad
