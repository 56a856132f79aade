// The work behind `tritgrad compare`: every recipe tuned alike, then trained with every seed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "models/training/train.h"
#include "tools/compare/record.h"
#include "tools/compare/run_cache.h"

namespace tritgrad {

struct ComparisonOptions {
  TrainOptions train;  // its recipe and seed are not used, nor is what concerns single runs
  std::vector<std::string> recipes{"fp32", "master", "votes", "latent8"};
  std::string baseline;  // name of a recipe; empty: master, or else the first recipe
  int seeds = 3;
  int tune = 1;         // learning rates tried for each recipe; 1: its own, untried
  int tune_epochs = 0;  // length of these trials; 0: that of a run
};

// The share of the training rows that tuning validates on when the options name none.
inline constexpr double kTuningValidation = 0.1;

// A run that has just ended, or was found in the cache.
struct FinishedRun {
  const RunResult& run;
  double tuning_factor = 0;  // the factor that a trial tries; 0: the run of a seed is no trial
  std::string not_kept;      // why the run could not be kept; empty where it was
};
using RunProgress = std::function<void(const FinishedRun&)>;

// Counts the trials and seeds of all recipes.
int run_count(const ComparisonOptions& options);

struct ExpectedWork {
  int runs = 0;
  double epochs = 0;  // sum over all runs; those that choose learning rates may be shorter
  double work = 0;    // work of an epoch, in any unit that is the same for all comparisons
};

// Estimates how long the rest of a list of comparisons will take.
class RemainingTime {
 public:
  // Adds a comparison to the list.
  void expect(const ExpectedWork& work);
  // Notes that a run of comparison `which` (from 0) of so many epochs took so many seconds, today
  // or when it was made.
  void finished(std::size_t which, int epochs, double seconds);

  // Takes the mean epoch of a comparison's own runs for what is left of it. Until it has any, its
  // work counts at the speed of those before it. There is no estimate before the first run.
  std::optional<double> seconds_left() const;
  std::string text() const;  // "12/45, about 1:02:03 left"

 private:
  struct Share {
    ExpectedWork expected;
    int runs = 0;         // how many are done
    double epochs = 0.0;  // sum over these runs, as are the seconds
    double seconds = 0.0;
  };
  std::vector<Share> shares_;
};

// Returns the work of a comparison; that of an epoch counts products of one weight, roughly.
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
