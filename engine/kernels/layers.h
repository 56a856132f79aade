// Kernels of layers without weights: activations, norms, pooling, standardising. No two arrays
// overlap.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"

namespace tritgrad {

// The statistics and parameters of batch norm for neighbouring columns, and whether a rectifier
// follows it.
struct NormColumns {
  const float* mean;
  const float* inverse_std;
  const float* gain;
  const float* bias;
  bool rectify;

  // Returns the columns from i on.
  NormColumns from(std::int64_t i) const {
    return {mean + i, inverse_std + i, gain + i, bias + i, rectify};
  }
};

// The statistics of one row for layer norm or RMS norm (mean 0), and the gain.
struct RowNorm {
  float mean, inverse_std;
  const float* gain;
};
struct RowNormSums {
  double dz, dz_z;
};

// Rows whose levels add up to 32 bits.
inline constexpr std::int64_t kMostLevelRows = 65'536;

struct LayerKernels {
  // ---- activations -----------------------------------------------------------------------------
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

  // ---- transformers ----------------------------------------------------------------------------
  // Turns pairs of neighbours: (x[2 i], x[2 i + 1]) <- (a c - b s, a s + b c), where they were (a,
  // b), c = cosines[i] and s = sines[i]; each operation rounded to float.
  void (*rotate_pairs)(float* x, const float* cosines, const float* sines, std::int64_t pairs);
  // y[i] = silu(gate[i]) up[i] with silu(x) = x / (1 + e^-x), within 6 units of 2^-24 of it or
  // 1e-36 |up[i]|; NaN stays.
  void (*swiglu)(float* y, const float* gate, const float* up, std::int64_t n);
  // With s = 1 / (1 + e^-gate[i]): dgate[i] = dy[i] up[i] (s + silu(gate[i]) (1 - s)), then dy[i]
  // *= silu(gate[i])
  void (*swiglu_gradient)(float* dgate, float* dy, const float* gate, const float* up,
                          std::int64_t n);

  // ---- batch norm: n columns of `rows` rows, `ld` apart in all arrays where none has its own
  // ----- With z = (x - mean) * inverse_std and u = z * gain + bias, each operation rounded to
  // float: y[i] = u, or max(u, 0) where NaN stays
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

  // ---- layer norm and RMS norm of one row ------------------------------------------------------
  // With z = (x - mean) * inverse_std and dz = gain * dy, each operation rounded to float:
  // y[i] = z * gain[i] + bias[i], or without a bias where that is null
  void (*row_norm)(float* y, const float* x, const RowNorm& norm, const float* bias,
                   std::int64_t n);
  // the sums of dz and of dz times z, in double, in kSumLanes lanes (reductions.h)
  RowNormSums (*row_norm_sums)(const float* dy, const float* x, const RowNorm& norm,
                               std::int64_t n);
  // dgain[i] += dy[i] z; dbias[i] += dy[i] unless null
  void (*add_row_norm_gradients)(float* dgain, float* dbias, const float* dy, const float* x,
                                 const RowNorm& norm, std::int64_t n);
  // dy[i] = inverse_std * (dz - mean_dz - z mean_dz_z)
  void (*row_norm_gradient)(float* dy, const float* x, const RowNorm& norm, float mean_dz,
                            float mean_dz_z, std::int64_t n);

  // ---- features --------------------------------------------------------------------------------
  void (*bytes_to_float)(float* out, const std::uint8_t* x, std::int64_t n);
  // x[i] <- sqrt(x[i]), rounded correctly
  void (*square_roots)(float* x, std::int64_t n);
  // x[i] <- (x[i] - mean) * inverse_std in double, then within +-the largest float; NaN stays. Mean
  // and inverse_std are those of column i, or mean[0] and inverse_std[0] for all columns.
  void (*standardize_features)(float* x, const float* mean, const float* inverse_std,
                               bool one_for_all, std::int64_t n);

  // ---- levels: images between layers in integers, as 16-bit numbers ----------------------------
  // levels[r][i] = (sums[r][i] - corrections[r]) / 2^shift, to nearest, halves up; it fits.
  void (*narrow_sums)(std::int16_t* levels, std::int64_t ld_levels, const std::int32_t* sums,
                      std::int64_t ld_sums, const std::int32_t* corrections, int shift,
                      std::int64_t rows, std::int64_t n);
  // Down n columns of at most kMostLevelRows rows, `ld` apart: sums[i] += level, squares[i] +=
  // level^2; least and most are moved down and up to the levels.
  void (*add_level_sums)(std::int64_t* sums, std::int64_t* squares, const std::int16_t* levels,
                         std::int64_t ld, std::int64_t rows, std::int64_t n);
  void (*widen_level_range)(std::int16_t* least, std::int16_t* most, const std::int16_t* levels,
                            std::int64_t ld, std::int64_t rows, std::int64_t n);
  // out[i] = factor * levels[i]
  void (*levels_to_float)(float* out, const std::int16_t* levels, float factor, std::int64_t n);
  // Does max_pool on levels, or takes the smallest of a channel where its turn is -1 instead of 0.
  void (*pool_levels)(std::int16_t* y, std::int16_t* winners, const std::int16_t* above,
                      const std::int16_t* below, const std::int16_t* turns, std::int64_t width,
                      std::int64_t channels);
  // Gives dy to that one of four pixels that won, and 0 to the others.
  void (*give_to_winners)(float* dabove, float* dbelow, const std::int16_t* winners,
                          const float* dy, std::int64_t width, std::int64_t channels);

  // ---- pooling ---------------------------------------------------------------------------------
  // One line of y, `width` pixels of `channels` numbers, comes from two of x, twice as long: the
  // largest of 2 x 2 pixels. NaN wins. `winners`, unless null, tells which of the four it was, the
  // first of equals: 1 upper left, 2 upper right, 4 lower left, 8 lower right; 0 for NaN.
  void (*max_pool)(float* y, std::int32_t* winners, const float* above, const float* below,
                   std::int64_t width, std::int64_t channels);
  // Adds dy to that one of the four pixels of x that won; where NaN did, to none.
  void (*max_pool_gradient)(float* dabove, float* dbelow, const std::int32_t* winners,
                            const float* dy, std::int64_t width, std::int64_t channels);
};

}  // namespace tritgrad
