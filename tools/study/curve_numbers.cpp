#include "tools/study/curve_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tritgrad {
namespace {

// The loss of an epoch cannot oscillate while it falls most, nor below the loss that is resolved.
bool is_judged(const std::vector<double>& epoch_loss, std::size_t epoch) {
  return epoch >= epoch_loss.size() / 10 && epoch_loss[epoch] > kResolvedLoss;
}

double phase_spread(const std::vector<double>& values, std::int64_t first_step,
                    std::int64_t period) {
  const std::vector<double> means = phase_means(values, first_step, period);
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  return *low > 0.0 ? *high / *low : 1.0;
}

double correlation(const std::vector<double>& values, std::int64_t lag) {
  const auto shift = static_cast<std::size_t>(lag);
  double squares = 0.0, products = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += values[i] * values[i];
    if (i >= shift) products += values[i] * values[i - shift];
  }
  return squares > 0.0 ? products / squares : 0.0;
}

// Compares a comb of teeth at whole beats with the lags between them: one tooth alone could be any
// oscillation.
void measure_beat(const std::vector<double>& epoch_loss, std::int64_t steps_per_epoch,
                  CurveNumbers& numbers) {
  constexpr std::int64_t kTeeth = 4;
  const std::vector<double> values = loss_oscillation(epoch_loss);
  numbers.beat = kStudyPeriod / std::gcd(kStudyPeriod, steps_per_epoch);
  double teeth = 0.0, others = 0.0, count = 0.0;
  for (std::int64_t lag = 1; lag <= kTeeth * numbers.beat; ++lag) {
    numbers.autocorrelation.push_back(correlation(values, lag));
    if (lag < 2) continue;
    const bool tooth = lag % numbers.beat == 0;
    (tooth ? teeth : others) += numbers.autocorrelation.back();
    count += tooth ? 0.0 : 1.0;
  }
  if (count == 0.0 || values.empty()) return;  // every epoch is a beat
  numbers.beat_correlation = teeth / static_cast<double>(kTeeth) - others / count;
  // Correlations of n numbers of noise have a variance of 1/n each.
  const double variance = 1.0 / static_cast<double>(kTeeth) + 1.0 / count;
  numbers.beat_noise = 3.0 * std::sqrt(variance / static_cast<double>(values.size()));
}

}  // namespace

double end_loss(const std::vector<double>& epoch_loss) {
  const std::size_t count = std::min<std::size_t>(epoch_loss.size(), kEndEpochs);
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  // Logarithms of multiples are summed, so that an unresolved loss comes out exactly.
  double sum = 0.0;
  for (std::size_t i = epoch_loss.size() - count; i < epoch_loss.size(); ++i) {
    if (!std::isfinite(epoch_loss[i])) return std::numeric_limits<double>::quiet_NaN();
    sum += std::log(std::max(epoch_loss[i] / kResolvedLoss, 1.0));
  }
  return kResolvedLoss * std::exp(sum / static_cast<double>(count));
}

std::vector<double> loss_oscillation(const std::vector<double>& epoch_loss) {
  constexpr std::size_t kAround = 10;
  std::vector<double> logs, values;
  for (const double loss : epoch_loss) logs.push_back(std::log(std::max(loss, kResolvedLoss)));
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (!is_judged(epoch_loss, i)) continue;
    // Both sides have the same number of epochs, so that a steady fall leaves nothing.
    const std::size_t width = std::min({kAround, i, logs.size() - 1 - i});
    double around = 0.0;
    for (std::size_t j = i - width; j <= i + width; ++j) around += logs[j];
    const double value = logs[i] - around / static_cast<double>(2 * width + 1);
    if (width > 0 && std::isfinite(value)) values.push_back(value);
  }
  return values;
}

double mean_oscillation(const std::vector<double>& epoch_loss) {
  const std::vector<double> values = loss_oscillation(epoch_loss);
  double sum = 0.0;
  for (const double value : values) sum += std::abs(value);
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : sum / static_cast<double>(values.size());
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

PhaseRatio phase_ratio(const std::vector<double>& values, std::int64_t first_step,
                       std::int64_t steps_per_epoch) {
  std::vector<double> flat = values;
  if (steps_per_epoch > 1) {
    const std::vector<double> places = phase_means(values, first_step, steps_per_epoch);
    for (std::size_t i = 0; i < flat.size(); ++i) {
      const std::size_t place =
          (static_cast<std::size_t>(first_step) + i) % static_cast<std::size_t>(steps_per_epoch);
      if (places[place] > 0.0) flat[i] /= places[place];
    }
  }
  PhaseRatio result;
  result.ratio = phase_spread(flat, first_step, kStudyPeriod);
  for (const std::int64_t period : {7, 9, 11, 13}) {
    result.control = std::max(result.control, phase_spread(flat, first_step, period));
  }
  return result;
}

CurveNumbers measure_curve(const std::vector<double>& epoch_loss, const StepTrace& trace) {
  CurveNumbers numbers;
  numbers.end_loss = end_loss(epoch_loss);
  numbers.oscillation = std::expm1(mean_oscillation(epoch_loss));
  std::vector<double> lengths;
  for (std::size_t i = 0; i < trace.epoch_length.size(); ++i) {
    if (is_judged(epoch_loss, i)) lengths.push_back(trace.epoch_length[i]);
  }
  numbers.update_length = phase_means(lengths, 0, 1)[0];
  numbers.update_change = phase_ratio(trace.update_change, trace.first_step, trace.steps_per_epoch);
  const std::vector<double> means =
      phase_means(trace.update_change, trace.first_step, kStudyPeriod);
  double mean = 0.0;
  for (const double value : means) mean += value / static_cast<double>(kStudyPeriod);
  for (std::size_t i = 0; i < means.size(); ++i) {
    numbers.update_change_profile[i] = mean > 0.0 ? means[i] / mean : 1.0;
  }
  measure_beat(epoch_loss, trace.steps_per_epoch, numbers);
  return numbers;
}

}  // namespace tritgrad
