// A training run as a terminal shows it: progress, warnings, notes, the --log file, and Ctrl-C.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "models/training/observer.h"
#include "models/training/train.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"

namespace tritgrad {

struct TerminalOptions {
  std::string log = {};    // file for one JSON object per epoch; empty: none
  bool quiet = false;      // no progress and no notes; warnings are no less true
  std::string cache = {};  // as --cache names it, for the command that goes on; empty: not given
};

// The --log file: one JSON object per epoch and line.
class RunLog {
 public:
  // The file begins anew with the first epoch, or at the end, so that a run which fails before has
  // not touched an older log. It begins with the epochs `done` that a resumed run has behind it. An
  // empty path logs nothing.
  RunLog(const std::string& path, std::uint64_t seed, const std::vector<EpochPoint>& done)
      : path_(path), seed_(seed), done_(done) {}

  void write(const EpochPoint& point);
  // Makes the file if it is not begun: for a run that ends without an epoch.
  void begin();

 private:
  void append(const EpochPoint& point);

  std::string path_;
  std::uint64_t seed_;
  std::vector<EpochPoint> done_;
  std::ofstream out_;
};

class TerminalObserver : public Observer {
 public:
  // Warnings are printed however quiet the terminal is to be. The ranks of a job must not be
  // interrupted, as the others would wait for the one that stopped.
  TerminalObserver(const TrainOptions& train, const TerminalOptions& options);

  void begin(const RunStart& start) override;
  void step(const StepReport& report) override;
  void epoch(const EpochPoint& point) override;
  void trained(std::int64_t steps_done, std::int64_t total) override;
  void warn(const std::string& recipe, const std::string& warning) override;
  void note(const std::string& sentence) override;
  bool interrupted() override { return watch_ && watch_->interrupted(); }

  // Whether a run has begun and not yet come to its last step.
  bool is_training() const { return is_training_; }

 private:
  TrainOptions train_;
  TerminalOptions options_;
  std::optional<InterruptWatch> watch_;
  std::optional<ProgressLine> progress_;
  std::optional<RunLog> log_;
  bool is_training_ = false;
};

// Trains in view of the terminal. The sentence of Interrupted tells what was saved of a run that
// had begun, and how to go on.
RunResult train_on_terminal(const Dataset& dataset, TrainOptions train,
                            const TerminalOptions& options);

}  // namespace tritgrad
