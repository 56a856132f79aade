// The page to read first: how a network is trained, in the order in which the data flow.
//
//   dataset -> batch -> model.forward(tape) -> loss -> tape.backward -> gradient is ready
//           -> optimizer.step(parameter) -> storage -> checkpoint
//
// From forward to the optimizer it is the page of a step, models/training/training_step.cpp.
#include "models/training/train.h"

#include "models/training/run_parts.h"

namespace tritgrad {

namespace {

std::optional<SavedRun> open_saved(const std::string& path) {
  return path.empty() ? std::nullopt : std::optional<SavedRun>(std::in_place, path);
}

Loader batches_of_rank(const Task& task, const Split& split, const TrainOptions& options) {
  Loader loader = task.training_batches(split.train);
  loader.restrict_to(
      [&options](std::int64_t rows) { return rows_of_rank(options, options.ranks, rows); });
  return loader;
}

}  // namespace

TrainingRun::Parts::Parts(const Dataset& data, const Split& rows, const TrainOptions& asked)
    : dataset(data),
      split(rows),
      options(asked),
      saved(open_saved(options.resume)),
      recipe(recipe_of_job(
          dataset, options,
          saved ? saved->model().recipe : load_recipe(options.recipe, options.overrides))),
      standardizer(Standardizer::fit(dataset, split.train, options.pixel_scale())),
      target_scale(TargetScale::fit(dataset, split.train)),
      task(make_task(dataset, split.train, standardizer, target_scale, options)),
      loader(batches_of_rank(*task, split, options)),
      model(make_model(options.model, dataset, dataset.outputs(), recipe, options.seed)),
      optimizer(make_optimizer(*model, recipe, options.epochs * loader.batches_per_epoch(),
                               options.seed)),
      parallel(make_parallel(options, recipe, *model, optimizer)),
      state(*model, optimizer, loader, standardizer, target_scale, dataset, options, recipe,
            parallel.get()),
      monitor(options, metric_of(dataset), recipe, *model, optimizer, state),
      result(describe_run(dataset, options, recipe, *model)),
      job{options, recipe, *task, *model, optimizer, tape, parallel.get()} {
  if (saved) {
    state.load(*saved);
    monitor.note_schedule(saved->spec());
    saved.reset();  // the file stays mapped no longer than it is needed
  }
  ledger::reset_peak();
  result.time.preparing = seconds_since(start);
  monitor.begin();
}

TrainingRun::TrainingRun(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  begin_unless_interrupted(options);
  parts_ = std::make_unique<Parts>(dataset, split, options);
}

TrainingRun::~TrainingRun() = default;

bool TrainingRun::is_over() const { return parts_->monitor.is_over(); }
const std::vector<EpochPoint>& TrainingRun::curve() const { return parts_->state.curve(); }
void TrainingRun::save_copy(const std::string& path) { parts_->state.save_copy(path); }
std::vector<std::byte> TrainingRun::checkpoint_bytes() { return parts_->state.checkpoint_bytes(); }

void TrainingRun::step() {
  Parts& run = *parts_;
  TimeSpent& time = run.result.time;
  const Batch batch = timed(&time.batches, [&] { return run.loader.next(); });
  // Forward, loss, backward and update.
  const BatchSums sums = timed(&time.steps, [&] { return train_step(run.job, batch); });
  run.state.add(sums, batch.whole);
  run.monitor.step_is_done(batch.whole);
  if (run.loader.cursor().position == 0) {
    const EpochSums& sums_of_epoch = run.state.sums();
    const double train_score = run.task->score(sums_of_epoch.score, sums_of_epoch.rows);
    const std::optional<Scores> val = run.scores_on(run.split.val, nullptr);
    run.state.end_epoch(train_score, val ? std::optional(val->score) : std::nullopt);
    run.monitor.epoch_is_over();
  }
  run.monitor.save_or_stop();
}

RunResult TrainingRun::finish() {
  Parts& run = *parts_;
  RunResult& result = run.result;
  run.monitor.end(run.parallel.get());
  if (!run.split.test.empty() && has_uneven_classes(run.dataset)) {
    result.confusion.emplace(run.dataset.class_names);
  }
  const std::optional<Scores> test =
      run.scores_on(run.split.test, result.confusion ? &*result.confusion : nullptr);
  if (test) {
    result.test_score = test->score;
    result.test_mae = test->mae;
    result.test_r2 = test->r2;
    result.test_nats = test->nats;
  }
  if (result.confusion) result.balanced_accuracy = result.confusion->balanced_accuracy();
  result.seconds = seconds_since(run.start);
  run.state.describe(result);
  if (run.parallel) {
    result.traffic = traffic_of(*run.parallel, run.options, run.recipe, run.model->parameters());
  }
  run.monitor.describe(result);
  return result;
}

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  TrainingRun run(dataset, split, options);
  while (!run.is_over()) run.step();
  return run.finish();
}

}  // namespace tritgrad
