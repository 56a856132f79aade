// All that a training run needs, in the order in which it is made (models/training/train.cpp).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/clock.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "models/training/parallel_run.h"
#include "models/training/run_monitor.h"
#include "models/training/train.h"
#include "models/training/training_state.h"
#include "models/training/training_step.h"

namespace tritgrad {

struct TrainingRun::Parts {
  Parts(const Dataset& data, const Split& rows, const TrainOptions& asked);

  Clock::time_point start = Clock::now();
  const Dataset& dataset;
  const Split& split;
  const TrainOptions options;
  // The recipe of a resumed run is that of its checkpoint, whatever became of the recipe's file.
  std::optional<SavedRun> saved;
  Recipe recipe;
  // Rows, standardised as those to train on ask for; of each batch, those that are this rank's.
  Standardizer standardizer;
  TargetScale target_scale;  // of regression
  std::unique_ptr<Task> task;
  Loader loader;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
  std::unique_ptr<DataParallel> parallel;
  TrainingState state;
  RunMonitor monitor;
  Tape tape;
  RunResult result;
  Job job;

  std::optional<Scores> scores_on(std::span<const std::int32_t> rows, Confusion* confusion) {
    return timed(&result.time.evaluation,
                 [&] { return evaluate(*model, tape, *task, rows, options.ranks, confusion); });
  }
};

}  // namespace tritgrad
