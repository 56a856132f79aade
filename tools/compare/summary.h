// Statistics over runs: one summary per recipe, compared with a baseline. The terminal's table and
// the report both print these, so their numbers cannot differ.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/training/run_result.h"
#include "tools/report/statistics.h"

namespace tritgrad {

struct Estimate {
  double mean = 0;
  // Sample standard deviation over seeds; over folds when there is one cross-validated seed; absent
  // when neither gives two values.
  std::optional<double> spread;
  int count = 0;  // seeds (or folds) behind it
  bool over_folds = false;
};

// Means over the seeds that have the value; non-finite values count as absent, and so does
// everything of runs that diverged.
struct RecipeSummary {
  std::string recipe;
  bool is_baseline = false;
  int seeds = 0;
  int diverged = 0;                    // of these seeds
  int warned = 0;                      // of these seeds, that trained with a warning
  std::string warning;                 // the first one
  std::optional<Estimate> accuracy;    // fraction; Comparison::accuracy_name says of which data
  std::optional<double> delta_points;  // 100 (accuracy - accuracy of the baseline)
  // Where that difference lies with 95 % confidence, in points (Welch); absent with fewer than two
  // seeds on either side.
  std::optional<Interval> delta_interval;
  std::optional<double> train_loss;
  BytesPerParameter bytes;                // zeros when every seed diverged
  std::optional<double> bytes_ratio;      // total bytes / total bytes of the baseline
  std::optional<double> seconds_per_run;  // median: other programs may have slowed some
  std::optional<double> zero_fraction;
  std::optional<double> flips_per_step;  // absent without ternary weights
  double peak_live_bytes = 0;            // the largest over seeds

  bool trained() const { return diverged < seeds; }  // some seed did
};

// Whether the interval tells the recipe from the baseline, and in which direction.
bool is_below(const RecipeSummary& summary);
bool is_above(const RecipeSummary& summary);

struct Comparison {
  std::string accuracy_name;  // "test accuracy", or "validation accuracy" if no run has a test
  std::string baseline;
  std::vector<RecipeSummary> recipes;  // baseline first, then in order of first appearance
};

// With `baseline`, or with the first recipe where that is none of them.
Comparison compare(const std::vector<RunResult>& runs, const std::string& baseline);

// The recipes, as places in comparison.recipes, for which no other has a higher mean accuracy at as
// few bytes, or as high a one at fewer, by rising bytes. Numbers count as they are printed, in
// hundredths. Recipes without accuracy are left out.
std::vector<std::size_t> pareto_front(const Comparison& comparison);

// The notes below a table whose recipes are marked: one for each recipe that trained with a
// warning.
std::vector<std::string> footnotes(const Comparison& comparison);

// The cells of a summary as text, rounded once for every place that prints them; `recipe` has a
// mark where there is a footnote.
struct SummaryText {
  std::string recipe, accuracy, delta, interval, weights, scales, residual, moments, gradients,
      total, ratio, seconds_per_run, zeros, flips, peak;
};
SummaryText describe(const RecipeSummary& summary);
std::string describe(const Estimate& accuracy);   // "98.56 ± 0.07", in percent
std::string describe(const Interval& of_points);  // "−0.12 … +0.30"

}  // namespace tritgrad
