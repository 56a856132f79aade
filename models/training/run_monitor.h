// The frame around the steps of a run: its observer, checkpoints, warnings, and an early end.
#pragma once

#include <string>
#include <vector>

#include "models/training/train.h"
#include "models/training/training_state.h"
#include "models/training/training_warnings.h"

namespace tritgrad {

// Throws Interrupted where the observer wants no run to begin: one of a single step is over before
// anybody is asked, so of many such runs none would ever be ended.
void begin_unless_interrupted(const TrainOptions& options);

class RunMonitor {
 public:
  // All must outlive the monitor.
  // The metric is that of the scores.
  RunMonitor(const TrainOptions& options, Metric metric, const Recipe& recipe, const Model& model,
             const Optimizer& optimizer, TrainingState& state);

  // Tells the observer where a resumed run has another number of epochs than before.
  void note_schedule(const TrainSpec& saved);
  void begin();
  void step_is_done(std::int64_t rows);
  void epoch_is_over();
  // Saves where a checkpoint is due, and throws Interrupted if the observer asks for the end.
  void save_or_stop();
  // Returns whether all steps are done, or as many as were asked for.
  bool is_over() const;
  void end(const DataParallel* parallel);

  // Fills in the findings of watched updates, and all warnings.
  void describe(RunResult& result);

 private:
  // Warns now, while it may spare the rest of the run, and keeps the warning for the result.
  void warn(const std::string& warning);
  std::int64_t steps_done() const { return optimizer_.steps_done(); }

  const TrainOptions& options_;
  Metric metric_;
  const Recipe& recipe_;
  const Model& model_;
  const Optimizer& optimizer_;
  TrainingState& state_;
  Observer& observer_;
  StallWarnings stall_;
  std::int64_t examples_ = 0;
  std::string other_schedule_;
  std::vector<std::string> warnings_;
};

}  // namespace tritgrad
