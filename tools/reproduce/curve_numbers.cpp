#include "tools/reproduce/curve_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tritgrad {
namespace {

double spread(const std::vector<double>& values, std::int64_t first_step, std::int64_t period) {
  const std::vector<double> means = phase_means(values, first_step, period);
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  return *low > 0.0 ? *high / *low : 1.0;
}

}  // namespace

double largest_rise(const std::vector<double>& epoch_loss) {
  double rise = 0.0;
  for (std::size_t i = 1; i < epoch_loss.size(); ++i) {
    const double change = epoch_loss[i] - epoch_loss[i - 1];
    if (!std::isnan(change)) rise = std::max(rise, change);
  }
  return rise;
}

double roughness(const std::vector<double>& epoch_loss) {
  double sum = 0.0;
  int count = 0;
  for (std::size_t i = std::max<std::size_t>(1, epoch_loss.size() / 2); i < epoch_loss.size();
       ++i) {
    const double change = std::abs(std::log(epoch_loss[i] / epoch_loss[i - 1]));
    if (!std::isfinite(change)) continue;
    sum += change;
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> phase_means(const std::vector<double>& values, std::int64_t first_step,
                                std::int64_t period) {
  const auto phases = static_cast<std::size_t>(period);
  std::vector<double> sums(phases), counts(phases);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0.0) || !std::isfinite(values[i])) continue;
    const std::size_t phase = (static_cast<std::size_t>(first_step) + i) % phases;
    sums[phase] += std::log(values[i]);
    counts[phase] += 1.0;
  }
  for (std::size_t i = 0; i < phases; ++i) {
    sums[i] = counts[i] > 0.0 ? std::exp(sums[i] / counts[i]) : 0.0;
  }
  return sums;
}

PhaseRatio phase_ratio(const std::vector<double>& values, std::int64_t first_step) {
  PhaseRatio result;
  result.ratio = spread(values, first_step, kStudyPeriod);
  for (const std::int64_t period : {7, 9, 11, 13}) {
    result.control = std::max(result.control, spread(values, first_step, period));
  }
  return result;
}

CurveNumbers measure_curve(const std::vector<double>& epoch_loss, const StepTrace& trace) {
  CurveNumbers numbers;
  numbers.end_loss =
      epoch_loss.empty() ? std::numeric_limits<double>::quiet_NaN() : epoch_loss.back();
  numbers.largest_rise = largest_rise(epoch_loss);
  numbers.roughness = roughness(epoch_loss);
  numbers.loss = phase_ratio(trace.loss, trace.first_step);
  numbers.length = phase_ratio(trace.length, trace.first_step);
  numbers.turn = phase_ratio(trace.turn, trace.first_step);
  const std::vector<double> means = phase_means(trace.turn, trace.first_step, kStudyPeriod);
  double mean = 0.0;
  for (const double value : means) mean += value / static_cast<double>(kStudyPeriod);
  for (std::size_t i = 0; i < means.size(); ++i) {
    numbers.turn_profile[i] = mean > 0.0 ? means[i] / mean : 1.0;
  }
  return numbers;
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  for (double& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || std::isinf(values[middle])) return values[middle];
  return 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace tritgrad
