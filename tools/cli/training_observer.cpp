#include "tools/cli/training_observer.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "tools/cli/command_line.h"
#include "tools/cli/terminal.h"

namespace tritgrad {
namespace {

// Says that nothing was saved, or by which command to go on.
std::string what_was_saved(const TrainOptions& train, const TerminalOptions& options) {
  if (train.folds > 0) return "nothing was saved";
  if (train.save.empty()) return "nothing was saved, as --save was not given";
  std::string go_on = "tritgrad train --resume " + shell_quoted(train.save);
  if (train.save_every > 0) go_on += concat(" --save-every ", train.save_every);
  if (!options.log.empty()) go_on += " --log " + shell_quoted(options.log);
  if (!options.cache.empty()) go_on += " --cache " + shell_quoted(options.cache);
  return "saved; to go on: " + go_on;
}

}  // namespace

void RunLog::begin() {
  if (path_.empty() || out_.is_open()) return;
  out_.open(path_, std::ios::trunc);
  check(out_.good(), "log file '", path_,
        "' cannot be written; check the folder and its permissions");
  for (const EpochPoint& point : done_) append(point);
}

void RunLog::write(const EpochPoint& point) {
  begin();
  if (!path_.empty()) append(point);
}

void RunLog::append(const EpochPoint& point) {
  nlohmann::ordered_json line{{"seed", seed_},
                              {"epoch", point.epoch},
                              {"train_loss", point.train_loss},
                              {"train_accuracy", point.train_accuracy}};
  line["val_accuracy"] = point.val_accuracy ? nlohmann::ordered_json(*point.val_accuracy) : nullptr;
  out_ << line.dump() << '\n' << std::flush;
  if (out_.good()) return;
  // An empty file would look like the log of a run that has just begun.
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path_, unknown) &&
      std::filesystem::file_size(path_, unknown) == 0) {
    std::filesystem::remove(path_, unknown);
  }
  fail("log file '", path_, "' cannot be written; is the disk full?");
}

TerminalObserver::TerminalObserver(const TrainOptions& train, const TerminalOptions& options)
    : train_(train), options_(options) {
  if (train.ranks == nullptr) watch_.emplace();
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
  log_->begin();
  progress_->finish();
  if (steps_done < total) {
    note(concat("stopped after step ", steps_done, " of ", total, "; ",
                what_was_saved(train_, options_)));
  }
}

void TerminalObserver::warn(const std::string& recipe, const std::string& warning) {
  progress_->clear();
  print_recipe_warning(recipe, warning);
}

void TerminalObserver::note(const std::string& sentence) {
  if (!options_.quiet) std::fprintf(stderr, "note: %s\n", sentence.c_str());
}

RunResult train_on_terminal(const Dataset& dataset, TrainOptions train,
                            const TerminalOptions& options) {
  check(train.folds == 0 || options.log.empty(),
        "--folds trains one model per fold; --save, --resume and --log need a single one");
  // The first rank alone talks of what concerns all of them.
  if (train.ranks != nullptr && train.ranks->rank() > 0) return tritgrad::train(dataset, train);
  TerminalObserver observer(train, options);
  train.observer = &observer;
  try {
    return tritgrad::train(dataset, train);
  } catch (const Interrupted& end) {
    if (!observer.is_training()) throw;
    throw Interrupted(concat(end.what(), "; ", what_was_saved(train, options)));
  }
}

}  // namespace tritgrad
