// The page to read first: how a network is trained, in the order in which the data flow.
//
//   dataset -> batch -> model.forward(tape) -> loss -> tape.backward -> gradient is ready
//           -> optimizer.step(parameter) -> storage -> checkpoint
//
// From forward to the optimizer it is the page of a step, models/training/training_step.cpp.
#include "models/training/train.h"

#include "engine/check.h"
#include "engine/clock.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "models/training/parallel_run.h"
#include "models/training/run_monitor.h"
#include "models/training/training_state.h"
#include "models/training/training_step.h"
#include "models/training/training_warnings.h"

namespace tritgrad {

namespace {

void train_epochs(const Job& job, Loader& loader, TrainingState& state, RunMonitor& monitor,
                  TimeSpent& time, const auto& accuracy_of_validation) {
  monitor.begin();
  while (!monitor.is_over()) {
    const Batch batch = timed(&time.batches, [&] { return loader.next(); });
    // Forward, loss, backward and update.
    const BatchSums sums = timed(&time.steps, [&] { return train_step(job, batch); });
    state.add(sums, batch.whole);
    monitor.step_is_done(batch.whole);
    if (loader.cursor().position == 0) {
      state.end_epoch(accuracy_of_validation());
      monitor.epoch_is_over();
    }
    monitor.save_or_stop();
  }
}

}  // namespace

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  begin_unless_interrupted(options);
  const Clock::time_point start = Clock::now();

  // The recipe of a resumed run is that of its checkpoint, whatever became of the recipe's file.
  std::optional<SavedRun> saved;
  if (!options.resume.empty()) saved.emplace(options.resume);
  const Recipe recipe =
      recipe_of_job(dataset, options,
                    saved ? saved->model().recipe : load_recipe(options.recipe, options.overrides));

  // Rows, standardised as those to train on ask for; of each batch, those that are this rank's.
  const Standardizer standardizer = Standardizer::fit(dataset, split.train, options.pixel_scale());
  const Classification task(dataset, standardizer, options,
                            class_weights(dataset, split.train, options.imbalance));
  Loader loader = task.training_batches(split.train);
  loader.restrict_to(
      [&options](std::int64_t rows) { return rows_of_rank(options, options.ranks, rows); });
  const std::int64_t total_steps = options.epochs * loader.batches_per_epoch();

  const auto model = make_model(options.model, dataset, dataset.classes(), recipe, options.seed);
  Optimizer optimizer = make_optimizer(*model, recipe, total_steps, options.seed);
  const auto parallel = make_parallel(options, recipe, *model, optimizer);
  TrainingState state(*model, optimizer, loader, standardizer, dataset, options, recipe,
                      parallel.get());
  RunMonitor monitor(options, recipe, *model, optimizer, state);
  if (saved) {
    state.load(*saved);
    monitor.note_schedule(saved->spec());
    saved.reset();  // the file stays mapped no longer than it is needed
  }
  ledger::reset_peak();

  Tape tape;
  RunResult result = describe_run(dataset, options, recipe, *model);
  TimeSpent& time = result.time;
  const auto accuracy_on = [&](const std::vector<std::int32_t>& rows, Confusion* confusion) {
    return timed(&time.evaluation,
                 [&] { return evaluate(*model, tape, task, rows, options.ranks, confusion); });
  };
  const Job job{options, recipe, task, *model, optimizer, tape, parallel.get()};
  time.preparing = seconds_since(start);

  train_epochs(job, loader, state, monitor, time, [&] { return accuracy_on(split.val, nullptr); });
  monitor.end(parallel.get());

  if (!split.test.empty() && has_uneven_classes(dataset)) {
    result.confusion.emplace(dataset.class_names);
  }
  result.test_accuracy = accuracy_on(split.test, result.confusion ? &*result.confusion : nullptr);
  if (result.confusion) result.balanced_accuracy = result.confusion->balanced_accuracy();
  result.seconds = seconds_since(start);
  state.describe(result);
  if (parallel) {
    result.traffic = traffic_of(*parallel, options, recipe, model->parameters());
  }
  monitor.describe(result);
  return result;
}

TrainOptions with_defaults(TrainOptions options, const Dataset& dataset) {
  TrainSpec& spec = options;
  spec = with_defaults(spec, dataset);
  return options;
}

RunResult train(const Dataset& dataset, const TrainOptions& asked) {
  const TrainOptions options = with_defaults(asked, dataset);
  if (options.folds == 0) return train(dataset, split_of(dataset, options, 0), options);
  check(options.save.empty() && options.resume.empty(),
        "--folds trains one model per fold; --save, --resume and --log need a single one");
  std::vector<RunResult> folds;
  for (int fold = 0; fold < options.folds; ++fold) {
    folds.push_back(train(dataset, split_of(dataset, options, fold), options));
  }
  return mean_of_folds(folds);
}

}  // namespace tritgrad
