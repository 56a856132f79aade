#include "models/training/run_monitor.h"

#include "engine/check.h"

namespace tritgrad {
namespace {

Observer& observer_of(const TrainOptions& options) {
  static Observer nobody;
  return options.observer == nullptr ? nobody : *options.observer;
}

}  // namespace

void begin_unless_interrupted(const TrainOptions& options) {
  if (observer_of(options).interrupted()) {
    throw Interrupted("interrupted before the first step of a run; nothing was saved of it");
  }
}

RunMonitor::RunMonitor(const TrainOptions& options, Metric metric, const Recipe& recipe,
                       const Model& model, const Optimizer& optimizer, TrainingState& state)
    : options_(options),
      metric_(metric),
      recipe_(recipe),
      model_(model),
      optimizer_(optimizer),
      state_(state),
      observer_(observer_of(options)),
      stall_(!options.resume.empty()) {}

void RunMonitor::note_schedule(const TrainSpec& saved) {
  if (saved.epochs == options_.epochs) return;
  other_schedule_ =
      concat("the schedule of rates in '", options_.resume, "' was that of ", saved.epochs,
             saved.epochs == 1 ? " epoch" : " epochs", " and is now that of ", options_.epochs);
}

void RunMonitor::begin() {
  const std::int64_t total = optimizer_.total_steps();
  observer_.begin({options_.seed, options_.epochs, total, steps_done(), state_.curve(), metric_});
  if (!other_schedule_.empty()) observer_.note(other_schedule_);
  if (steps_done() < total) return;
  observer_.note(concat("the run in '", options_.resume,
                        "' is finished; to train on give --epochs above ", options_.epochs));
  // Nothing is left to do but the copy that was asked for.
  if (!options_.save.empty() && options_.save != options_.resume) state_.save();
}

void RunMonitor::step_is_done(std::int64_t rows) {
  examples_ += rows;
  const EpochSums& sums = state_.sums();
  observer_.step({static_cast<int>(state_.curve().size()) + 1, steps_done(),
                  sums.loss / static_cast<double>(sums.rows), examples_});
}

void RunMonitor::epoch_is_over() {
  observer_.epoch(state_.curve().back());
  warn(stall_.warning(optimizer_, model_.parameters()));
}

bool RunMonitor::is_over() const {
  return steps_done() == optimizer_.total_steps() ||
         (options_.stop_after > 0 && steps_done() >= options_.stop_after);
}

void RunMonitor::save_or_stop() {
  const bool interrupted = observer_.interrupted();
  const bool due = options_.save_every > 0 && steps_done() % options_.save_every == 0;
  const std::int64_t total = optimizer_.total_steps();
  const bool epoch_is_over = steps_done() % (total / options_.epochs) == 0;
  if (!options_.save.empty() && (due || epoch_is_over || interrupted || is_over())) {
    state_.save();
  }
  if (interrupted && steps_done() < total) {
    throw Interrupted(concat("interrupted after step ", steps_done(), " of ", total));
  }
}

void RunMonitor::end(const DataParallel* parallel) {
  const std::int64_t total = optimizer_.total_steps();
  if (parallel != nullptr && parallel->never_compressed()) {
    warn(concat("the second moment never settled, so all ", total,
                " steps were warm-up and nothing was compressed; give the warm-up a share of the "
                "steps (--dp-warmup 0.2)"));
  }
  observer_.trained(steps_done(), total);
}

void RunMonitor::describe(RunResult& result) {
  const ParameterStore& parameters = model_.parameters();
  result.movable_fraction = stall_.movable_fraction(optimizer_, parameters);
  result.skipped_updates = optimizer_.skipped_updates();
  const std::string skips =
      warning_of_skips(result.skipped_updates, result.steps, result.train_loss);
  // If most updates are left out, that explains why no trit flips.
  warn(!skips.empty() ? skips : stall_.warning_at_end(optimizer_, parameters, state_.flips()));
  // What is known to be amiss explains a bad fit.
  if (metric_ == Metric::kRmse && warnings_.empty() && steps_done() == optimizer_.total_steps()) {
    warn(warning_of_fit(result.train_loss, result.test_r2));
  }
  result.warnings = warnings_;
}

void RunMonitor::warn(const std::string& warning) {
  if (warning.empty()) return;
  warnings_.push_back(warning);
  observer_.warn(recipe_.name, warning);
}

}  // namespace tritgrad
