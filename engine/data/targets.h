// The targets of regression: labels that are numbers, and their standardisation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "engine/data/dataset.h"

namespace tritgrad {

// Returns whether labels that are finite numbers are a measured quantity rather than classes: more
// than 20 different values, and some of them no whole numbers or fewer than 10 rows a value.
bool look_measured(std::span<const double> labels);

// Returns the note for labels that were found to look so.
std::string note_of_measured(const std::string& label, std::span<const double> labels);

// Returns the note for labels that are numbers and become classes, though they may have been meant
// to be predicted: more than 10 different ones, or some that are not whole. Empty for others.
std::string note_of_classes(const std::string& label, std::span<const double> labels);

// Returns a warning of targets that lie further outside the range in which the middle 90 % of them
// are than ten times its width; `place` says where a row stands. Empty where there are none, and
// for fewer than 20 targets.
std::string warning_of_outliers(std::span<const double> targets,
                                const std::function<std::string(std::int64_t row)>& place);

// Returns whether a number may be a target: finite, and no larger than fp32 has room for.
bool is_usable_target(double target);

// Throws Error that begins with `where` and ends in `advice` unless some targets differ, or they
// are there `to_score` a model.
void check_targets(const Dataset& dataset, const std::string& where, bool to_score,
                   const std::string& advice);

// Targets to zero mean and unit variance and back, in double: what a network learns, and what a
// person reads.
struct TargetScale {
  double mean = 0.0;
  double deviation = 1.0;  // of the population

  // Is fitted to the targets of the training rows; to classes, nothing. Throws Error where all
  // those targets are the same number, or differ too little to have a deviation in double.
  static TargetScale fit(const Dataset& dataset, std::span<const std::int32_t> rows);

  float standardised(double target) const {
    return static_cast<float>((target - mean) / deviation);
  }
  // Returns what an output of a network means, in the units of the targets.
  double in_units(float output) const { return mean + deviation * static_cast<double>(output); }

  friend bool operator==(const TargetScale&, const TargetScale&) = default;
};

}  // namespace tritgrad
