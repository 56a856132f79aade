#include "tools/cli/training_observer.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

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
  const bool piped = train.data == "-";
  if (piped) go_on += " --data FILE";
  if (train.save_every > 0) go_on += concat(" --save-every ", train.save_every);
  if (!options.log.empty()) go_on += " --log " + shell_quoted(options.log);
  if (!options.cache.empty()) go_on += " --cache " + shell_quoted(options.cache);
  return concat("saved; to go on", piped ? ", with the rows of standard input in FILE" : "", ": ",
                go_on);
}

}  // namespace

RunLog::RunLog(OutputFile& file, std::uint64_t seed, const std::vector<EpochPoint>& done,
               Metric metric)
    : file_(file), seed_(seed), metric_(metric) {
  for (const EpochPoint& point : done) add(point);
}

void RunLog::write(const EpochPoint& point) {
  add(point);
  append();
}

void RunLog::end() {
  if (!begun_) append();
}

void RunLog::add(const EpochPoint& point) {
  nlohmann::ordered_json line{{"seed", seed_},
                              {"epoch", point.epoch},
                              {"train_loss", point.train_loss},
                              {score_key("train", metric_), point.train_score}};
  line[score_key("val", metric_)] =
      point.val_score ? nlohmann::ordered_json(*point.val_score) : nullptr;
  lines_ += line.dump() + '\n';
}

void RunLog::append() {
  begun_ = true;
  file_.append(lines_);
  lines_.clear();
}

TerminalObserver::TerminalObserver(const TrainOptions& train, const TerminalOptions& options,
                                   OutputFile* log)
    : train_(train), options_(options), log_file_(log) {
  if (train.ranks == nullptr) watch_.emplace();
}

void TerminalObserver::begin(const RunStart& start) {
  if (log_file_ != nullptr) log_.emplace(*log_file_, start.seed, start.curve, start.metric);
  progress_.emplace(stderr, options_.quiet, start.epochs, start.total_steps, start.steps_done);
  is_training_ = true;
}

void TerminalObserver::step(const StepReport& report) {
  progress_->update(report.epoch, report.step, report.loss, report.examples);
}

void TerminalObserver::epoch(const EpochPoint& point) {
  if (log_) log_->write(point);
}

void TerminalObserver::trained(std::int64_t steps_done, std::int64_t total) {
  is_training_ = false;
  if (log_) log_->end();
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
  OutputFile log("--log", options.log, kJsonBegins);
  return train_on_terminal(dataset, std::move(train), options, log);
}

RunResult train_on_terminal(const Dataset& dataset, TrainOptions train,
                            const TerminalOptions& options, OutputFile& log) {
  check(train.folds == 0 || options.log.empty(),
        "--folds trains one model per fold; --save, --resume and --log need a single one");
  // The first rank alone talks of what concerns all of them.
  if (train.ranks != nullptr && train.ranks->rank() > 0) return tritgrad::train(dataset, train);
  TerminalObserver observer(train, options, &log);
  train.observer = &observer;
  try {
    return tritgrad::train(dataset, train);
  } catch (const Interrupted& end) {
    if (!observer.is_training()) throw;
    throw Interrupted(concat(end.what(), "; ", what_was_saved(train, options)));
  }
}

}  // namespace tritgrad
