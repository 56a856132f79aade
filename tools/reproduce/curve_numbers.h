// What one training curve says in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tritgrad {

// The window of the study has ten rows: what its ages do wrong comes back every ten steps.
inline constexpr std::int64_t kStudyPeriod = 10;

// How much a positive quantity varies with the step modulo ten: its geometric mean at each of the
// ten phases, largest over smallest. `control` is the largest such ratio at periods 7, 9, 11 and
// 13, which nothing in the method has: what noise alone amounts to.
struct PhaseRatio {
  double ratio = 1.0;
  double control = 1.0;
};

struct CurveNumbers {
  double end_loss = 0.0;      // mean loss of the last epoch
  double largest_rise = 0.0;  // of the loss between consecutive epochs
  double roughness = 0.0;  // mean of |ln(loss / loss of the epoch before)|, second half of training
  double test_accuracy = 0.0;
  PhaseRatio loss;    // of a step
  PhaseRatio length;  // of the update of all weights
  PhaseRatio turn;    // length of the difference between an update and the one before
  std::array<double, kStudyPeriod> turn_profile{};  // geometric means over their own mean
};

// Per-step quantities of consecutive steps; first_step counts from 1.
struct StepTrace {
  std::int64_t first_step = 1;
  std::vector<double> loss, length, turn;
};

double largest_rise(const std::vector<double>& epoch_loss);
double roughness(const std::vector<double>& epoch_loss);
// Geometric means of `values` by (step mod period); 0 for a phase without a positive value.
std::vector<double> phase_means(const std::vector<double>& values, std::int64_t first_step,
                                std::int64_t period);
PhaseRatio phase_ratio(const std::vector<double>& values, std::int64_t first_step);

// Everything but the accuracy.
CurveNumbers measure_curve(const std::vector<double>& epoch_loss, const StepTrace& trace);

// The middle one, or the mean of the two in the middle; NaN for none. Values that are not finite
// count as larger than all others.
double median(std::vector<double> values);

}  // namespace tritgrad
