#include "models/export/inference_norm.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/reductions.h"
#include "ops/layer_norm.h"

namespace tritgrad {
namespace {

// Returns the sum of term(x[i]) in double and in kSumLanes lanes.
template <typename Term>
double lane_sum(const std::vector<float>& x, const Term& term) {
  double lanes[kSumLanes] = {};
  for (std::size_t i = 0; i < x.size(); ++i)
    lanes[i % kSumLanes] += term(static_cast<double>(x[i]));
  for (std::int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// Returns 1 / sqrt of the mean square distance from `mean`, and eps.
float inverse_deviation(const std::vector<float>& x, double mean, float eps) {
  const double squares =
      lane_sum(x, [mean](double value) { return (value - mean) * (value - mean); });
  return static_cast<float>(
      1.0 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(eps)));
}

}  // namespace

void layer_norm_row(std::vector<float>& x, const std::vector<float>& gain,
                    const std::vector<float>& bias) {
  const double mean =
      lane_sum(x, [](double value) { return value; }) / static_cast<double>(x.size());
  const float inverse = inverse_deviation(x, mean, kLayerNormEps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = (x[i] - static_cast<float>(mean)) * inverse * gain[i] + bias[i];
  }
}

void rms_norm_row(std::vector<float>& x, const std::vector<float>& gain) {
  const float inverse = inverse_deviation(x, 0.0, kRmsNormEps);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] * inverse * gain[i];
}

}  // namespace tritgrad
