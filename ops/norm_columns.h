// The statistics of batch norm between its passes, for the ops that go down the columns: a piece of
// them after the other (batch_norm.cpp), or as a product makes them (linear_norm.cpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/tape.h"
#include "ops/batch_norm.h"

namespace tritgrad {

// The statistics that forward leaves for backward: arrays with one element per column, in the
// tape's arena.
struct NormStatistics {
  float* gain;
  float* bias;
  float* mean;
  float* inverse_std;
  float* unbiased;  // variances; in scratch, for forward only
  Rectify rectify;

  NormColumns from(std::int64_t column) const {
    return NormColumns{mean, inverse_std, gain, bias, rectify == Rectify::kYes}.from(column);
  }
  // Sets those of column j in a batch of `count` rows from its mean and the sum of squares around
  // it.
  void set(std::int64_t j, double mean_of_j, double squares, double count) const {
    const double variance = squares / count;
    unbiased[j] = static_cast<float>(variance * count / (count - 1.0));
    mean[j] = static_cast<float>(mean_of_j);
    inverse_std[j] =
        static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(kBatchNormEps)));
  }
};

// Repeats the first n numbers of an array behind them until there are `times` times as many.
inline void repeat_columns(float* numbers, std::int64_t n, std::int64_t times) {
  for (std::int64_t i = 1; i < times; ++i) std::copy_n(numbers, n, numbers + i * n);
}

// Returns a parameter's values, `times` times after each other, in the tape's arena.
inline float* decode_columns(Tape& tape, const Parameter& parameter, std::int64_t times) {
  const Shape shape = parameter.shape();
  auto* values = tape.allocate<float>(shape.size() * times);
  parameter.storage().decode_rows(0, shape.rows(), values);
  repeat_columns(values, shape.size(), times);
  return values;
}

inline NormStatistics allocate_statistics(Tape& tape, const BatchNormParameters& p, Rectify rectify,
                                          std::int64_t times) {
  const std::int64_t features = p.gain->shape().size();
  return {decode_columns(tape, *p.gain, times),   decode_columns(tape, *p.bias, times),
          tape.allocate<float>(features * times), tape.allocate<float>(features * times),
          tape.allocate_scratch<float>(features), rectify};
}

// Moves the running statistics towards those of a batch that is trained on.
inline void move_averages(const Tape& tape, const BatchNormParameters& p,
                          const NormStatistics& batch) {
  if (!tape.recording()) return;
  p.running_mean->move_average(batch.mean);
  p.running_var->move_average(batch.unbiased);
}

// Throws Error unless the norm is one of x [n, features] and, in training, n is at least 2.
void check_batch_norm(const Shape& x, const BatchNormParameters& p);
void check_batch(const Shape& x);

// With z = (x - mean) * inverse_std and dz = gain * dy:
// dx = inverse_std * (dz - mean(dz) - z * mean(dz * z)), dgain = sum(dy * z), dbias = sum(dy).
// dy loses what the rectifier held back, which is seen from x, as that is read anyway.
struct NormGradient {
  NormStatistics batch;
  Tensor dgain, dbias;
  // One number of each a column, in scratch:
  float* factor;  // gain * inverse_std
  float* mean_dy;
  float* mean_dy_z;

  void set(std::int64_t j, double sum_dy, double sum_dy_z, double count) const {
    factor[j] = batch.gain[j] * batch.inverse_std[j];
    mean_dy[j] = static_cast<float>(sum_dy / count);
    mean_dy_z[j] = static_cast<float>(sum_dy_z / count);
    dbias.data[j] += static_cast<float>(sum_dy);
    dgain.data[j] += static_cast<float>(sum_dy_z);
  }
  // dy becomes dx, on columns [begin, begin + n) of some rows `ld` apart.
  void apply(float* dy, const float* x, std::int64_t ld, std::int64_t rows, std::int64_t begin,
             std::int64_t n) const {
    kernels().layers.batch_norm_gradient(dy, x, ld, batch.from(begin), factor + begin,
                                         mean_dy + begin, mean_dy_z + begin, rows, n);
  }
};

inline NormGradient allocate_gradient(Tape& tape, const BatchNormParameters& p,
                                      const NormStatistics& batch, std::int64_t times) {
  const std::int64_t n = p.gain->shape().size() * times;
  const auto numbers = [&] { return tape.allocate_scratch<float>(n); };
  return {batch, tape.gradient(*p.gain), tape.gradient(*p.bias), numbers(), numbers(), numbers()};
}

}  // namespace tritgrad
