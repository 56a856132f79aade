// The page to read first: how a network is trained, in the order in which the data flow.
//
//   dataset -> batch -> model.forward(tape) -> loss -> tape.backward -> gradient is ready
//           -> optimizer.step(parameter) -> storage -> checkpoint
//
// From forward to the optimizer it is the page of a step, models/training/training_step.cpp.
#include "models/training/train.h"

#include "engine/clock.h"
#include "engine/data/loader.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "models/training/parallel_run.h"
#include "models/training/stall.h"
#include "models/training/training_state.h"
#include "models/training/training_step.h"

namespace tritgrad {
namespace {

Observer& observer_of(const TrainOptions& options) {
  static Observer nobody;
  return options.observer == nullptr ? nobody : *options.observer;
}

// Throws Error when the run is to stop at a step that its checkpoint has passed.
void check_stop(const TrainOptions& options, std::int64_t steps_done) {
  check(options.stop_after == 0 || options.stop_after > steps_done, "--stop-after ",
        options.stop_after, ": the checkpoint '", options.resume, "' has ", steps_done,
        " steps already; leave the option out or name a later step");
}

// A run of one step is over before anybody is asked, so of many such runs none would ever be ended.
void begin_unless_interrupted(const TrainOptions& options) {
  if (observer_of(options).interrupted()) {
    throw Interrupted("interrupted before the first step of a run; nothing was saved of it");
  }
}

// The recipe as the ranks of the job train it, once all of them have the same.
Recipe checked_recipe(const Dataset& dataset, const TrainOptions& options, const Recipe& alone) {
  check_same_job(dataset, options, alone);
  const Recipe recipe = joint_recipe(options.parallel, alone);
  check_micro_batches(options, recipe);
  return recipe;
}

void add_step(EpochSums& sums, const BatchSums& step, std::int64_t rows, std::int64_t flips) {
  sums.flips += flips;
  if (!step.finite) return;
  sums.loss += step.loss * static_cast<double>(rows);
  sums.correct += step.correct;
  sums.rows += rows;
}

// Batches of the training rows; of each, the rows that are this rank's.
Loader make_loader(const Dataset& dataset, const Split& split, const Standardizer& standardizer,
                   const TrainOptions& options) {
  Loader loader(dataset, split.train, standardizer, options.batch, options.seed,
                RowOrder::kShuffled, parse_augmentation(options.augment));
  loader.restrict_to([options](std::int64_t rows) { return rows_of_rank(options, rows); });
  return loader;
}

// A run from its first step, or from a checkpoint, to its result.
class TrainingRun {
 public:
  TrainingRun(const Dataset& dataset, const Split& split, const TrainOptions& options,
              const Recipe& recipe, const std::optional<SavedRun>& saved)
      : dataset_(dataset),
        split_(split),
        options_(options),
        recipe_(recipe),
        observer_(observer_of(options)),
        standardizer_(Standardizer::fit(dataset, split.train, options.pixel_scale())),
        loader_(make_loader(dataset, split, standardizer_, options)),
        total_steps_(options.epochs * loader_.batches_per_epoch()),
        model_(make_model(options.model, dataset, dataset.classes(), recipe, options.seed)),
        optimizer_(make_optimizer(*model_, recipe, total_steps_, options.seed)),
        parallel_(make_parallel(options, recipe, *model_, optimizer_)),
        state_(*model_, optimizer_, loader_, standardizer_, dataset, options, recipe,
               parallel_.get()),
        stall_(!options.resume.empty()) {
    if (saved) {
      state_.load(*saved);
      epochs_before_ = saved->options().epochs;
    }
    check_stop(options, optimizer_.steps_done());
    ledger::reset_peak();
  }

  RunResult run();

 private:
  void run_steps();
  void end_epoch();
  std::optional<double> accuracy_on(const std::vector<std::int32_t>& rows) {
    return timed(&time_.evaluation, [&] {
      return evaluate(*model_, tape_, dataset_, rows, standardizer_, options_.ranks);
    });
  }
  // Said now, while it may spare the rest of the run, and kept for whoever reads the result.
  void warn(const std::string& warning) {
    if (warning.empty()) return;
    warnings_.push_back(warning);
    observer_.warn(recipe_.name, warning);
  }
  void warn_at_end(const RunResult& result);

  void note_other_schedule() const;

  const Clock::time_point start_ = Clock::now();
  const Dataset& dataset_;
  const Split& split_;
  const TrainOptions& options_;
  const Recipe& recipe_;
  Observer& observer_;
  const Standardizer standardizer_;
  Loader loader_;
  const std::int64_t total_steps_;
  const std::unique_ptr<Model> model_;
  Optimizer optimizer_;
  const std::unique_ptr<DataParallel> parallel_;
  TrainingState state_;
  int epochs_before_ = options_.epochs;  // of the run that is resumed
  StallWatch stall_;
  std::vector<std::string> warnings_;
  Tape tape_;
  TimeSpent time_;
};

void TrainingRun::note_other_schedule() const {
  if (epochs_before_ == options_.epochs) return;
  observer_.note(concat("the schedule of rates in '", options_.resume, "' was that of ",
                        epochs_before_, epochs_before_ == 1 ? " epoch" : " epochs",
                        " and is now that of ", options_.epochs));
}

void TrainingRun::end_epoch() {
  state_.end_epoch(accuracy_on(split_.val));
  observer_.epoch(state_.curve().back());
  warn(stall_.look(optimizer_, model_->parameters()));
}

void TrainingRun::run_steps() {
  const Job job{options_, recipe_, *model_, optimizer_, tape_, parallel_.get()};
  const std::int64_t steps_per_epoch = loader_.batches_per_epoch();
  std::int64_t examples = 0;
  bool stop = false;
  // Of a finished run that is resumed nothing is left to do but the copy that was asked for.
  if (optimizer_.steps_done() == total_steps_ && !options_.save.empty() &&
      options_.save != options_.resume) {
    state_.save();
  }
  while (!stop && optimizer_.steps_done() < total_steps_) {
    const Batch batch = timed(&time_.batches, [&] { return loader_.next(); });
    EpochSums& sums = state_.sums();
    const BatchSums step = timed(&time_.steps, [&] { return train_step(job, batch); });
    add_step(sums, step, batch.whole, optimizer_.take_flips().flips);
    examples += batch.whole;

    const std::int64_t done = optimizer_.steps_done();
    observer_.step({static_cast<int>((done - 1) / steps_per_epoch) + 1, done,
                    sums.loss / static_cast<double>(sums.rows), examples});
    const bool epoch_ends = done % steps_per_epoch == 0;
    if (epoch_ends) end_epoch();
    const bool interrupted = observer_.interrupted();
    stop = interrupted || (options_.stop_after > 0 && done >= options_.stop_after);
    const bool due = options_.save_every > 0 && done % options_.save_every == 0;
    if (!options_.save.empty() && (due || stop || epoch_ends)) state_.save();
    if (interrupted && done < total_steps_) {
      throw Interrupted(concat("interrupted after step ", done, " of ", total_steps_));
    }
  }
}

// Where most updates are left out, that explains why no trit flips.
void TrainingRun::warn_at_end(const RunResult& result) {
  const std::string skips =
      warning_of_skips(result.skipped_updates, result.steps, result.train_loss);
  warn(!skips.empty() ? skips
                      : stall_.look_at_end(optimizer_, model_->parameters(), state_.flips()));
}

RunResult TrainingRun::run() {
  observer_.begin(
      {options_.seed, options_.epochs, total_steps_, optimizer_.steps_done(), state_.curve()});
  RunResult result = describe_run(dataset_, options_, recipe_, *model_);
  time_.preparing = seconds_since(start_);
  note_other_schedule();
  if (optimizer_.steps_done() == total_steps_) {
    observer_.note(concat("the run in '", options_.resume,
                          "' is finished; to train on give --epochs above ", options_.epochs));
  }
  run_steps();
  if (parallel_ && parallel_->never_compressed()) {
    warn(concat("the second moment never settled, so all ", total_steps_,
                " steps were warm-up and nothing was compressed; give the warm-up a share of the "
                "steps (--dp-warmup 0.2)"));
  }
  observer_.trained(optimizer_.steps_done(), total_steps_);

  result.test_accuracy = accuracy_on(split_.test);
  result.seconds = seconds_since(start_);
  result.time = time_;
  state_.describe(result);
  result.movable_fraction = stall_.movable(optimizer_, model_->parameters());
  result.skipped_updates = optimizer_.skipped_updates();
  if (parallel_) {
    result.traffic = traffic_of(*parallel_, options_, recipe_, model_->parameters());
  }
  warn_at_end(result);
  result.warnings = warnings_;
  return result;
}

}  // namespace

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  if (options.resume.empty()) {
    return train(dataset, split, options, load_recipe(options.recipe, options.overrides));
  }
  begin_unless_interrupted(options);
  std::optional<SavedRun> saved(options.resume);
  // Whatever became of the recipe's file.
  const Recipe recipe = checked_recipe(dataset, options, saved->model().recipe);
  TrainingRun run(dataset, split, options, recipe, saved);
  saved.reset();  // the file stays mapped no longer than it is needed
  return run.run();
}

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options,
                const Recipe& recipe) {
  begin_unless_interrupted(options);
  const Recipe joint = checked_recipe(dataset, options, recipe);
  return TrainingRun(dataset, split, options, joint, std::nullopt).run();
}

}  // namespace tritgrad
