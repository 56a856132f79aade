// The work behind `tritgrad compare`: every recipe tuned alike, then trained with every seed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "models/training/train.h"
#include "tools/compare/record.h"
#include "tools/compare/run_cache.h"
#include "tools/compare/run_clock.h"

namespace tritgrad {

struct ComparisonOptions {
  TrainOptions train;  // recipe, seed, and what concerns single runs (save, log) aside
  std::vector<std::string> recipes{"fp32", "master", "votes", "latent8"};
  std::string baseline;  // a recipe's name; empty: master, or else the first recipe
  int seeds = 3;
  int tune = 1;         // learning rates tried for each recipe; 1: its own, untried
  int tune_epochs = 0;  // of these trials; 0: as many as of a run
};

// Share of the training rows that tuning validates on when the options name none.
inline constexpr double kTuningValidation = 0.1;

// A run that has just ended, or was found in the cache.
struct FinishedRun {
  const RunResult& run;
  double tuning_factor = 0;  // of a run that tries a learning rate; 0: of a seed
  std::string not_kept;      // why the run could not be kept; empty: it was
};
using RunProgress = std::function<void(const FinishedRun&)>;

// Trials and seeds of all recipes.
int run_count(const ComparisonOptions& options);

// What RunClock wants to know; work in products of one weight, roughly.
ExpectedWork expected_work(const Dataset& dataset, const ComparisonOptions& options);

// Throws Error for what would end the comparison after it began: recipes that cannot be read, two
// of one name, a baseline that is none of them, models, augmentation, parts of a split or
// micro-batches that do not fit, tuning together with folds.
void check_comparison(const Dataset& dataset, const ComparisonOptions& options);

// With options.tune > 1, every recipe is trained with seed 1 on its training rows without a
// validation part (options.train.validation of them), once for each learning rate on trial; the
// best on that part is used for all seeds, which train on all training rows. Test rows are looked
// at once for each seed, and never while tuning. A run that diverges is reported as such and ends
// nothing. The record has no `dataset` and `command` yet.
ComparisonRecord run_comparison(const Dataset& dataset, const ComparisonOptions& options,
                                const RunCache& cache, const RunProgress& progress);

}  // namespace tritgrad
