// The page to read first: how a network is trained, in the order in which the data flow.
//
//   dataset -> batch -> model.forward(tape) -> loss -> tape.backward -> gradient is ready
//           -> optimizer.step(parameter) -> storage -> checkpoint
//
// From forward to the optimizer it is the page of a step, tools/training_step.cpp.
#include "tools/train.h"

#include "engine/data/loader.h"
#include "models/networks/model.h"
#include "tools/cli/complain.h"
#include "tools/evaluate.h"
#include "tools/parallel_run.h"
#include "tools/report/clock.h"
#include "tools/run_log.h"
#include "tools/stall.h"
#include "tools/stopped_run.h"
#include "tools/training_state.h"
#include "tools/training_step.h"

namespace tritgrad {
namespace {

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
  void run_steps(RunLog& log, ProgressLine& progress);
  void end_epoch(RunLog& log, ProgressLine& progress);
  std::optional<double> accuracy_on(const std::vector<std::int32_t>& rows) {
    return timed(&time_.evaluation, [&] {
      return evaluate(*model_, tape_, dataset_, rows, standardizer_, options_.ranks);
    });
  }
  // What is said once, whatever the number of ranks, is said by the first.
  bool is_first() const { return options_.ranks == nullptr || options_.ranks->rank() == 0; }

  // Said now, while it may spare the rest of the run, and kept for whoever reads the result.
  void warn(const std::string& warning, ProgressLine& progress) {
    if (warning.empty()) return;
    warnings_.push_back(warning);
    if (options_.silent || !is_first()) return;
    progress.clear();
    warn_of_recipe(recipe_.name, warning);
  }
  void warn_at_end(const RunResult& result, ProgressLine& progress);

  void note(const std::string& sentence) const {
    if (options_.quiet || !is_first()) return;
    std::fprintf(stderr, "note: %s\n", sentence.c_str());
  }

  void note_other_schedule() const;

  const Clock::time_point start_ = Clock::now();
  const Dataset& dataset_;
  const Split& split_;
  const TrainOptions& options_;
  const Recipe& recipe_;
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
  note(concat("the schedule of rates in '", options_.resume, "' was that of ", epochs_before_,
              epochs_before_ == 1 ? " epoch" : " epochs", " and is now that of ", options_.epochs));
}

void TrainingRun::end_epoch(RunLog& log, ProgressLine& progress) {
  state_.end_epoch(accuracy_on(split_.val));
  log.write(state_.curve().back());
  warn(stall_.look(optimizer_, model_->parameters()), progress);
}

void TrainingRun::run_steps(RunLog& log, ProgressLine& progress) {
  const Job job{options_, recipe_, *model_, optimizer_, tape_, parallel_.get()};
  const std::int64_t steps_per_epoch = loader_.batches_per_epoch();
  std::int64_t examples = 0;
  std::optional<InterruptWatch> watch;  // ranks would wait for the one that stopped
  if (options_.ranks == nullptr) watch.emplace();
  bool stop = false;
  // Of a finished run that is resumed nothing is left to do but the copy that was asked for.
  if (optimizer_.steps_done() == total_steps_ && !options_.save.empty() &&
      options_.save != options_.resume) {
    state_.save(options_.save);
  }
  while (!stop && optimizer_.steps_done() < total_steps_) {
    const Batch batch = timed(&time_.batches, [&] { return loader_.next(); });
    EpochSums& sums = state_.sums();
    const BatchSums step = timed(&time_.steps, [&] { return train_step(job, batch); });
    add_step(sums, step, batch.whole, optimizer_.take_flips().flips);
    examples += batch.whole;

    const std::int64_t done = optimizer_.steps_done();
    progress.update(static_cast<int>((done - 1) / steps_per_epoch) + 1, done,
                    sums.loss / static_cast<double>(sums.rows), examples);
    const bool epoch_ends = done % steps_per_epoch == 0;
    if (epoch_ends) end_epoch(log, progress);
    const bool interrupted = watch && watch->interrupted();
    stop = interrupted || (options_.stop_after > 0 && done >= options_.stop_after);
    const bool due = options_.save_every > 0 && done % options_.save_every == 0;
    if (!options_.save.empty() && (due || stop || epoch_ends)) state_.save(options_.save);
    if (interrupted && done < total_steps_) throw interruption(options_, done, total_steps_);
  }
}

// Where most updates are left out, that explains why no trit flips.
void TrainingRun::warn_at_end(const RunResult& result, ProgressLine& progress) {
  const std::string skips =
      warning_of_skips(result.skipped_updates, result.steps, result.train_loss);
  warn(
      !skips.empty() ? skips : stall_.look_at_end(optimizer_, model_->parameters(), state_.flips()),
      progress);
}

RunResult TrainingRun::run() {
  RunLog log(options_.log, options_.seed, state_.curve());
  ProgressLine progress(stderr, options_.quiet, options_.epochs, total_steps_,
                        optimizer_.steps_done());
  RunResult result = describe_run(dataset_, options_, recipe_, *model_);
  time_.preparing = seconds_since(start_);
  note_other_schedule();
  if (optimizer_.steps_done() == total_steps_) {
    note(concat("the run in '", options_.resume, "' is finished; to train on give --epochs above ",
                options_.epochs));
  }
  run_steps(log, progress);
  log.end();
  if (parallel_ && parallel_->never_compressed()) {
    warn(concat("the second moment never settled, so all ", total_steps_,
                " steps were warm-up and nothing was compressed; give the warm-up a share of the "
                "steps (--dp-warmup 0.2)"),
         progress);
  }
  progress.finish();
  if (optimizer_.steps_done() < total_steps_) {
    note(concat("stopped after step ", optimizer_.steps_done(), " of ", total_steps_, "; ",
                what_was_saved(options_)));
  }

  result.test_accuracy = accuracy_on(split_.test);
  result.seconds = seconds_since(start_);
  result.time = time_;
  state_.describe(result);
  result.movable_fraction = stall_.movable(optimizer_, model_->parameters());
  result.skipped_updates = optimizer_.skipped_updates();
  if (parallel_) {
    result.traffic = traffic_of(*parallel_, options_, recipe_, model_->parameters());
  }
  warn_at_end(result, progress);
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
