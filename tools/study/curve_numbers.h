// Numbers that tell one training curve from another.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tritgrad {

// The window of the study has ten rows: an error in the ages of its rows comes back every ten
// steps.
inline constexpr std::int64_t kStudyPeriod = 10;

// A loss of fp32 probabilities below the spacing of numbers under 1 is no longer a measurement;
// smaller ones count as this.
inline constexpr double kResolvedLoss = 0x1p-24;

// Losses oscillate from epoch to epoch, so the end of a run is this many epochs, which are whole
// beats of steps and epochs on either data set (see `beat`).
inline constexpr std::int64_t kEndEpochs = 20;

// How much a positive quantity varies with the step modulo ten: its geometric mean at each of the
// ten phases, largest over smallest. `control` is the largest such ratio at periods 7, 9, 11 and
// 13, which nothing in the method has: it shows what noise alone amounts to. Variation with the
// place of a step in its epoch (the last batch is smaller) is divided out before.
struct PhaseRatio {
  double ratio = 1.0;
  double control = 1.0;
};

// Counts of MicroAdam's error-feedback buckets whose bounds are equal (delta = Delta): between such
// bounds is nothing to divide by, so their codes are 0, and all of the bucket is decoded to delta.
struct BucketCount {
  std::int64_t buckets = 0;        // kept by the rule
  std::int64_t zero_at_start = 0;  // with delta = Delta = 0 before the first step
  std::int64_t written = 0;        // by all steps together
  std::int64_t constant = 0;       // written with equal bounds
  std::int64_t zero = 0;           // written with bounds of zero
};

struct CurveNumbers {
  double end_loss = 0.0;     // see end_loss()
  double oscillation = 0.0;  // share of the loss: exp(mean_oscillation()) - 1
  double test_accuracy = 0.0;
  double update_length = 0.0;  // geometric mean over the epochs whose oscillation is measured
  PhaseRatio update_change;    // length of the difference between an update and the one before
  std::array<double, kStudyPeriod> update_change_profile{};  // geometric means over their own mean
  std::int64_t beat = 1;                // epochs after which the step modulo ten is the same again
  std::vector<double> autocorrelation;  // of the loss oscillation, at lags of 1 to 4 beats
  // Mean autocorrelation at one to four beats less that at all other lags from 2 on, and three
  // standard errors of it.
  double beat_correlation = 0.0;
  double beat_noise = 0.0;
  BucketCount buckets;
};

// The updates of one run; first_step counts from 1.
struct StepTrace {
  std::int64_t first_step = 1;  // of `update_change`
  std::int64_t steps_per_epoch = 1;
  std::vector<double> update_change;  // of consecutive steps: length of update - update before
  std::vector<double> epoch_length;   // geometric means of the lengths of every epoch's updates
};

// Geometric mean of the last kEndEpochs losses, of all in a shorter run; none counts as smaller
// than kResolvedLoss. NaN if one of them is not finite.
double end_loss(const std::vector<double>& epoch_loss);
// ln(loss) of an epoch less its mean over the ten epochs on each side (fewer near the ends), after
// the first tenth of training and while the loss can be resolved.
std::vector<double> loss_oscillation(const std::vector<double>& epoch_loss);
// Mean magnitude of the oscillation; NaN if there is none to measure.
double mean_oscillation(const std::vector<double>& epoch_loss);
// Geometric means of `values` by (step mod period); 0 for a phase without a positive value.
std::vector<double> phase_means(const std::vector<double>& values, std::int64_t first_step,
                                std::int64_t period);
PhaseRatio phase_ratio(const std::vector<double>& values, std::int64_t first_step,
                       std::int64_t steps_per_epoch);

// Measures all numbers but the accuracy and the buckets.
CurveNumbers measure_curve(const std::vector<double>& epoch_loss, const StepTrace& trace);

}  // namespace tritgrad
