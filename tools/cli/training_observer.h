// A training run as a terminal shows it: progress, warnings, notes, the --log file, and Ctrl-C.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/training/observer.h"
#include "models/training/train.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
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
  // With the first epoch, or at the end, the file begins anew, with the epochs that a resumed run
  // has behind it: a run that fails before, be it that the disk is full, has not touched an older
  // log. `file` must outlive the object.
  RunLog(OutputFile& file, std::uint64_t seed, const std::vector<EpochPoint>& done,
         Metric metric = Metric::kAccuracy);

  void write(const EpochPoint& point);
  // Makes the file if it is not begun: for a run that ends without an epoch.
  void end();

 private:
  void add(const EpochPoint& point);
  void append();

  OutputFile& file_;
  std::uint64_t seed_;
  Metric metric_;
  std::string lines_;  // that are not written yet
  bool begun_ = false;
};

class TerminalObserver : public Observer {
 public:
  // Warnings are said however quiet it is. The ranks of a job must not be interrupted, as the
  // others would wait for the one that stopped.
  // `log` is the file of --log, or null.
  TerminalObserver(const TrainOptions& train, const TerminalOptions& options,
                   OutputFile* log = nullptr);

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
  OutputFile* log_file_;
  std::optional<InterruptWatch> watch_;
  std::optional<ProgressLine> progress_;
  std::optional<RunLog> log_;
  bool is_training_ = false;
};

// Trains in view of the terminal. What Interrupted says of a run that had begun tells what was
// saved of it and how to go on. `log` is the file of --log, held since before the work began; the
// other form holds it from now on.
RunResult train_on_terminal(const Dataset& dataset, TrainOptions train,
                            const TerminalOptions& options, OutputFile& log);
RunResult train_on_terminal(const Dataset& dataset, TrainOptions train,
                            const TerminalOptions& options);

}  // namespace tritgrad
