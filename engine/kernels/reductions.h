// Kernels that add up: one number of an array, sums of columns, an array added to another.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"

namespace tritgrad {

// Lanes of sums in double: element i is added to lane i % kSumLanes, then the upper half of the
// lanes to the lower one until one is left.
inline constexpr std::int64_t kSumLanes = 32;

struct ReductionKernels {
  bool (*all_finite)(const float* x, std::int64_t n);
  bool (*all_finite_bf16)(const std::uint16_t* x, std::int64_t n);
  // Returns the largest magnitude; NaN counts as larger than everything, and n = 0 gives 0.
  float (*max_abs)(const float* x, std::int64_t n);
  // Sums in double, in kSumLanes lanes.
  double (*sum)(const float* x, std::int64_t n);
  double (*sum_of_magnitudes)(const float* x, std::int64_t n);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  // Returns the sum of (x[i] - mean)^2, in double.
  double (*sum_of_squares_around)(const float* x, double mean, std::int64_t n);
  // Returns the sum of (sums[i] - correction)^2, exactly, as long as it is below 2^63. The
  // differences fit an int32.
  std::int64_t (*sum_of_squared_sums)(const std::int32_t* sums, std::int32_t correction,
                                      std::int64_t n);

  // Sums down n columns of `rows` rows, which are ld apart in all arrays, a row after the other:
  // sums[i] += x[i], (x[i] - means[i])^2, a[i] b[i]. No two arrays overlap.
  void (*add_to_sums)(double* sums, const float* x, std::int64_t ld, std::int64_t rows,
                      std::int64_t n);
  void (*add_squares_around)(double* sums, const float* x, std::int64_t ld, const double* means,
                             std::int64_t rows, std::int64_t n);
  void (*add_products)(double* sums, const float* a, const float* b, std::int64_t ld,
                       std::int64_t rows, std::int64_t n);
  // out[i] += factor * x[i]; the arrays do not overlap.
  void (*add_scaled)(float* out, const float* x, float factor, std::int64_t n);
};

}  // namespace tritgrad
