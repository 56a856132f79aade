#include "tools/cli/training_observer.h"

#include <cstdio>

#include "engine/check.h"
#include "tools/cli/complain.h"
#include "tools/cli/shell_quoted.h"

namespace tritgrad {
namespace {

// "nothing was saved", or the command to go on with.
std::string what_was_saved(const TrainOptions& options) {
  if (options.folds > 0) return "nothing was saved";
  if (options.save.empty()) return "nothing was saved, as --save was not given";
  std::string go_on = "tritgrad train --resume " + shell_quoted(options.save);
  if (options.save_every > 0) go_on += concat(" --save-every ", options.save_every);
  if (!options.log.empty()) go_on += " --log " + shell_quoted(options.log);
  if (!options.cache.empty()) go_on += " --cache " + shell_quoted(options.cache);
  return "saved; to go on: " + go_on;
}

}  // namespace

TerminalObserver::TerminalObserver(const TrainOptions& options) : options_(options) {
  if (options.ranks == nullptr) watch_.emplace();
}

void TerminalObserver::begin(const RunStart& start) {
  log_.emplace(options_.log, start.seed, start.curve);
  progress_.emplace(stderr, options_.quiet, start.epochs, start.total_steps, start.steps_done);
  is_training_ = true;
}

void TerminalObserver::step(const StepReport& report) {
  progress_->update(report.epoch, report.step, report.loss, report.examples);
}

void TerminalObserver::epoch(const EpochPoint& point) { log_->write(point); }

void TerminalObserver::trained(std::int64_t steps_done, std::int64_t total) {
  is_training_ = false;
  log_->end();
  progress_->finish();
  if (steps_done < total) {
    note(concat("stopped after step ", steps_done, " of ", total, "; ", what_was_saved(options_)));
  }
}

void TerminalObserver::warn(const std::string& recipe, const std::string& warning) {
  progress_->clear();
  warn_of_recipe(recipe, warning);
}

void TerminalObserver::note(const std::string& sentence) {
  if (!options_.quiet) std::fprintf(stderr, "note: %s\n", sentence.c_str());
}

RunResult train_on_terminal(const Dataset& dataset, TrainOptions options) {
  // What is said once, whatever the number of ranks, is said by the first.
  if (options.ranks != nullptr && options.ranks->rank() > 0) return train(dataset, options);
  TerminalObserver observer(options);
  options.observer = &observer;
  try {
    return train(dataset, options);
  } catch (const Interrupted& end) {
    if (!observer.is_training()) throw;
    throw Interrupted(concat(end.what(), "; ", what_was_saved(options)));
  }
}

}  // namespace tritgrad
