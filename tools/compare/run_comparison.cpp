#include "tools/compare/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/data/augmentation.h"
#include "models/footprint.h"
#include "models/networks/model.h"
#include "models/training/language_model.h"
#include "models/training/training_state.h"
#include "models/training/training_step.h"
#include "tools/report/number_text.h"
#include "tools/report/system_info.h"

namespace tritgrad {
namespace {

class Runner {
 public:
  Runner(const Dataset& dataset, const RunCache& cache, const RunProgress& progress)
      : dataset_(dataset), data_hash_(data_xxh3(dataset)), cache_(cache), progress_(progress) {}

  // Takes the run from the cache, or trains now and keeps the result.
  RunResult finish(const TrainOptions& options, double tuning_factor) const {
    const RunPurpose purpose = tuning_factor > 0.0 ? RunPurpose::kTuning : RunPurpose::kTest;
    const std::string key = run_key(dataset_, data_hash_, options, purpose);
    std::string not_kept;
    std::optional<RunResult> run = cache_.find(key);
    if (!run) {
      run = train_now(options, purpose);
      run->machine = machine_;
      try {
        cache_.store(key, *run);
      } catch (const Error& error) {  // a result that is not kept is as good
        not_kept = error.what();
      }
    }
    progress_({*run, tuning_factor, not_kept});
    return *run;
  }

 private:
  RunResult train_now(const TrainOptions& options, RunPurpose purpose) const {
    const Clock::time_point start = Clock::now();
    try {
      if (purpose == RunPurpose::kTest) return train(dataset_, options);
      Split split = split_of(dataset_, options, 0);
      split.test.clear();
      return train(dataset_, split, options);
    } catch (const Diverged& error) {
      const Recipe recipe = load_recipe(options.recipe, options.overrides);
      const auto model = make_model(options.model, dataset_, dataset_.outputs(), recipe, 1);
      RunResult run = describe_run(dataset_, options, recipe, *model);
      run.diverged = error.what();
      run.train_loss = std::numeric_limits<double>::quiet_NaN();
      run.seconds = seconds_since(start);
      return run;
    }
  }

  const Dataset& dataset_;
  const std::string data_hash_;
  const std::string machine_ = describe_machine();
  const RunCache& cache_;
  const RunProgress& progress_;
};

// Factor 1 leaves the recipe's text as it is, so that its runs are those of an untuned comparison.
void set_rate(TrainOptions& options, const TuningCandidate& candidate) {
  if (candidate.factor == 1.0) return;
  options.overrides.push_back(fmt::format("weight.lr={}", candidate.lr));
}

// Returns the run that tries a learning rate where `base` is the run of a seed.
TrainOptions trial_of(TrainOptions base, const ComparisonOptions& options) {
  base.seed = 1;
  if (base.validation <= 0.0) base.validation = kTuningValidation;
  if (options.tune_epochs > 0) base.epochs = options.tune_epochs;
  return base;
}

std::string baseline_of(const ComparisonOptions& options, const std::vector<RunResult>& runs) {
  if (!options.baseline.empty()) return options.baseline;
  for (const std::string& master : {std::string("master"), concat("master", kForLanguageModels)}) {
    const auto is_master = [&](const RunResult& run) { return run.recipe == master; };
    if (std::any_of(runs.begin(), runs.end(), is_master)) return master;
  }
  return runs.front().recipe;
}

// The tokens that the runs of seeds train on in an epoch; 0 where the data are no text.
std::int64_t tokens_per_epoch(const Dataset& dataset, const TrainOptions& run) {
  if (!dataset.is_text()) return 0;
  const Split split = split_of(dataset, run, 0);
  return LanguageModel(dataset, run).training_batches(split.train).rows_per_epoch() *
         dataset.features;
}

WeightBytes weight_bytes(const Dataset& dataset, const TrainOptions& run) {
  const Recipe recipe = load_recipe(run.recipe, run.overrides);
  const auto plan = plan_model(run.model, dataset, dataset.outputs(), recipe);
  return {recipe.name, bytes_per_weight(forecast_footprint(plan, recipe))};
}

int trial_count(const ComparisonOptions& options) { return options.tune > 1 ? options.tune : 0; }

Tuning tune(const Runner& runner, const ComparisonOptions& options, const TrainOptions& base) {
  const Recipe recipe = load_recipe(base.recipe, base.overrides);
  Tuning tuning;
  tuning.recipe = recipe.name;
  for (int i = 0; i < options.tune; ++i) {
    TuningCandidate candidate;
    candidate.factor = next_factor(tuning.candidates, tuning.metric);
    candidate.lr = candidate.factor * recipe.group(Role::kWeight).update.lr;
    TrainOptions trial = trial_of(base, options);
    set_rate(trial, candidate);
    const RunResult run = runner.finish(trial, candidate.factor);
    tuning.metric = run.metric;
    if (run.diverged.empty()) candidate.val_score = run.val_score;
    candidate.seconds = run.seconds;
    candidate.cached = run.cached;
    candidate.curve = run.curve;
    candidate.machine = run.machine;
    insert_by_factor(tuning.candidates, std::move(candidate));
  }
  tuning.chosen = choose_candidate(tuning.candidates, tuning.metric);
  return tuning;
}

}  // namespace

int run_count(const ComparisonOptions& options) {
  return static_cast<int>(options.recipes.size()) * (trial_count(options) + options.seeds);
}

ExpectedWork expected_work(const Dataset& dataset, const ComparisonOptions& options) {
  const TrainOptions run = with_defaults(options.train, dataset);
  const Recipe recipe = load_recipe(options.recipes.front(), run.overrides);
  const int epochs =
      trial_count(options) * trial_of(run, options).epochs + options.seeds * run.epochs;
  return {run_count(options), static_cast<double>(options.recipes.size()) * epochs,
          products_per_row(run.model, dataset, dataset.outputs(), recipe) *
              static_cast<double>(dataset.rows) * std::max(1, run.folds)};
}

void check_comparison(const Dataset& dataset, const ComparisonOptions& options) {
  check(options.tune == 1 || options.train.folds == 0,
        "--tune: with --folds every row is tested once, and none is left to choose a learning rate "
        "by; leave --folds out, or tune beforehand");
  check(options.tune_epochs == 0 || options.tune > 1, "--tune-epochs needs --tune 2 or more");
  const TrainOptions run = with_defaults(options.train, dataset);
  check_augmentation(parse_augmentation(run.augment), dataset);
  split_of(dataset, trial_count(options) > 0 ? trial_of(run, options) : run, 0);
  std::vector<std::string> names;
  for (const std::string& recipe : options.recipes) {
    const Recipe loaded = load_recipe(recipe, options.train.overrides);
    check(std::count(names.begin(), names.end(), loaded.name) == 0, "--recipes: '", loaded.name,
          "' is named twice", recipe == loaded.name ? "" : ", by '" + recipe + "' as well",
          "; give each recipe a name of its own (key 'name' of its file)");
    names.push_back(loaded.name);
    plan_model(run.model, dataset, dataset.outputs(), loaded);
    check_micro_batches(run, loaded);
    check_recomputation(run);
  }
  check(options.baseline.empty() || std::count(names.begin(), names.end(), options.baseline) > 0,
        "--baseline: '", options.baseline, "' is none of the recipes that are compared (",
        fmt::format("{}", fmt::join(names, ", ")), "); name one of them, or add it to --recipes");
}

ComparisonRecord run_comparison(const Dataset& dataset, const ComparisonOptions& options,
                                const RunCache& cache, const RunProgress& progress) {
  const Runner runner(dataset, cache, progress);
  const TrainOptions base = with_defaults(options.train, dataset);
  ComparisonRecord record;
  record.data = dataset.name;
  record.model = base.model;
  for (const std::string& recipe : options.recipes) {
    TrainOptions run = base;
    run.recipe = recipe;
    if (options.tune > 1) {
      record.tunings.push_back(tune(runner, options, run));
      set_rate(run, record.tunings.back().choice());
      run.validation = 0.0;
    }
    record.tokens_per_epoch = tokens_per_epoch(dataset, run);
    record.weight_bytes.push_back(weight_bytes(dataset, run));
    for (int seed = 1; seed <= options.seeds; ++seed) {
      run.seed = static_cast<std::uint64_t>(seed);
      record.runs.push_back(runner.finish(run, 0.0));
    }
  }
  record.baseline = baseline_of(options, record.runs);
  return record;
}

void RemainingTime::expect(const ExpectedWork& work) { shares_.push_back({work}); }

void RemainingTime::finished(std::size_t which, int epochs, double seconds) {
  Share& share = shares_.at(which);
  ++share.runs;
  share.epochs += epochs;
  share.seconds += seconds;
}

std::optional<double> RemainingTime::seconds_left() const {
  double seconds = 0.0, work = 0.0;
  for (const Share& share : shares_) {
    seconds += share.seconds;
    work += share.epochs * share.expected.work;
  }
  if (work <= 0.0) return std::nullopt;
  double left = 0.0;
  for (const Share& share : shares_) {
    const double each =
        share.epochs > 0 ? share.seconds / share.epochs : share.expected.work * seconds / work;
    left += each * (share.expected.epochs - share.epochs);
  }
  return left;
}

std::string RemainingTime::text() const {
  int done = 0, runs = 0;
  for (const Share& share : shares_) {
    done += share.runs;
    runs += share.expected.runs;
  }
  const std::optional<double> left = seconds_left();
  const std::string count = fmt::format("{}/{}", done, runs);
  return left && done < runs ? count + ", about " + duration(*left) + " left" : count;
}

}  // namespace tritgrad
