// Statistics over runs: one summary for each recipe, compared with a baseline. The terminal's table
// and the report both print these, so their numbers cannot differ.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/record.h"
#include "tools/report/score_unit.h"
#include "tools/report/statistics.h"

namespace tritgrad {

// The parts of BytesPerParameter, in the order in which tables and pictures show them.
struct ByteCategory {
  const char* name;
  double BytesPerParameter::*bytes;
  const char* meaning;  // as the definitions of a page explain it
};
inline constexpr std::array kByteCategories = {
    ByteCategory{
        "weights", &BytesPerParameter::weights,
        "What inference reads: trits, codes, values, biases, gains, running statistics; for master "
        "the fp32 master itself, from which the ternary value is derived."},
    ByteCategory{"scales", &BytesPerParameter::scales, "Scales of ternary groups."},
    ByteCategory{"residual", &BytesPerParameter::residual,
                 "What an update could not express in the weight: accumulators beside the trits."},
    ByteCategory{"moments", &BytesPerParameter::moments, "Optimizer state."},
    ByteCategory{"gradients", &BytesPerParameter::gradients,
                 "Gradient buffers that outlive their layer. Released gradients exist for one "
                 "layer at a time and show in the peak memory only."}};

struct Estimate {
  double mean = 0;
  // The sample standard deviation over seeds, or over folds when there is one cross-validated seed;
  // absent when neither gives two values.
  std::optional<double> spread;
  int count = 0;  // how many seeds (or folds) have a value
  bool over_folds = false;
};

// Means over the seeds that have the value; non-finite values count as absent, and so does
// everything of runs that diverged.
struct RecipeSummary {
  std::string recipe;
  bool is_baseline = false;
  int seeds = 0;
  int diverged = 0;               // how many of these seeds diverged
  int warned = 0;                 // how many of these seeds trained with a warning
  std::string warning;            // the first warning
  std::optional<Estimate> score;  // Comparison::score_name says of which rows
  ScoreUnit unit;                 // of all recipes of a comparison
  // The score minus that of the baseline, as they are written: accuracies in points.
  std::optional<double> delta;
  // The 95 % confidence interval of that difference, likewise (Welch); absent with fewer than two
  // seeds on either side.
  std::optional<Interval> delta_interval;
  std::optional<double> train_loss;
  BytesPerParameter bytes;                  // zeros when every seed diverged
  std::optional<double> bytes_ratio;        // total bytes / total bytes of the baseline
  std::optional<double> bytes_per_weight;   // of matrices alone, see models/footprint.h
  std::optional<double> seconds_per_run;    // median: other programs may have slowed some
  std::optional<double> tokens_per_second;  // of training alone, the median; absent without a text
  std::optional<double> zero_fraction;
  std::optional<double> flips_per_step;   // absent without ternary weights
  std::optional<double> peak_live_bytes;  // the largest over seeds; absent when all diverged
  std::optional<Tuning> tuning;           // absent where no learning rates were tried

  bool trained() const { return diverged < seeds; }  // whether some seed did not diverge
};

// Whether the interval of the difference lies on one side of 0.
bool is_below(const RecipeSummary& summary);
bool is_above(const RecipeSummary& summary);

struct Comparison {
  std::string score_name;  // "test accuracy", or "validation accuracy" if no run has a test
  ScoreUnit unit;
  std::string baseline;
  std::vector<RecipeSummary> recipes;  // baseline first, then in order of first appearance
  std::vector<PublishedResult> published = {};
};

// Compares with `baseline`, or with the first recipe where no run is of that name.
Comparison compare(const std::vector<RunResult>& runs, const std::string& baseline);
// Compares the runs of the record with its baseline, and adds what the record knows of each recipe:
// how it was tuned, the bytes of its matrices, the tokens of a text that it trains on in a second;
// and what others published.
Comparison compare(const ComparisonRecord& record);

// Returns the recipes, as places in comparison.recipes, for which no other has a better mean
// score at as few bytes, or as good a one at fewer. They are sorted by rising bytes. Numbers are
// compared as they are printed. Recipes without a score are left out.
std::vector<std::size_t> pareto_front(const Comparison& comparison);

// Marks the name of a recipe that has a footnote.
inline constexpr const char* kFootnoteMark = "*";
// Returns the name of the row of a result that others published.
std::string row_name(const PublishedResult& result);
// Returns the notes below a table: one for each recipe that trained with a warning, and one for
// each row that others published, with its protocol.
std::vector<std::string> footnotes(const Comparison& comparison);

std::string describe(const Estimate& score, const ScoreUnit& unit);     // "98.56 ± 0.07"
std::string describe(const Interval& of_delta, const ScoreUnit& unit);  // "−0.12 … +0.30"
std::string score_text(const RecipeSummary& summary);  // "98.60 ± 0.14 (1 diverged)"

}  // namespace tritgrad
