// What several runs say together: one summary per recipe, compared with a baseline. The terminal
// table and the HTML report both print these, so their numbers cannot differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/run_result.h"

namespace tritgrad {

struct Estimate {
  double mean = 0;
  // Sample standard deviation over seeds; over folds when there is one cross-validated seed; absent
  // when neither gives two values.
  std::optional<double> spread;
  int count = 0;  // seeds (or folds) behind it
};

// Means over the seeds that have the value; non-finite values count as absent.
struct RecipeSummary {
  std::string recipe;
  bool is_baseline = false;
  int seeds = 0;
  std::optional<Estimate> accuracy;    // fraction; Comparison::accuracy_name says of which data
  std::optional<double> delta_points;  // 100 (accuracy - accuracy of the baseline)
  std::optional<double> delta_error;   // its standard error: sqrt(s1^2 / n1 + s2^2 / n2), in points
  std::optional<double> train_loss;
  BytesPerParameter bytes;
  std::optional<double> bytes_ratio;  // total bytes / total bytes of the baseline
  std::optional<double> seconds_per_epoch;
  std::optional<double> zero_fraction;
  std::optional<double> flips_per_step;  // absent without ternary weights
  double peak_live_bytes = 0;            // the largest over seeds
};

struct Comparison {
  std::string accuracy_name;  // "test accuracy", or "validation accuracy" if no run has a test
  std::string baseline;
  std::vector<RecipeSummary> recipes;  // baseline first, then in order of first appearance
};

Comparison compare(const std::vector<RunResult>& runs, const std::string& baseline);

// One or two sentences: what the most accurate of the smaller recipes costs against the baseline.
std::string headline(const Comparison& comparison);

// The cells of a summary as text, rounded once for every place that prints them.
struct SummaryText {
  std::string accuracy, delta, weights, scales, residual, moments, gradients, total, ratio,
      seconds_per_epoch, zeros, flips, peak;
};
SummaryText describe(const RecipeSummary& summary);
std::string describe(const Estimate& accuracy);  // "98.56 ± 0.07", in percent

}  // namespace tritgrad
