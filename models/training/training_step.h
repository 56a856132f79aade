// One step of training: forward, loss, backward and update of a batch, part by part.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/data/loader.h"
#include "engine/tape.h"
#include "models/networks/model.h"
#include "models/recipes/recipe.h"
#include "models/training/task.h"
#include "models/training/train.h"
#include "optim/optimizer.h"
#include "optim/parallel/data_parallel.h"

namespace tritgrad {

// Seconds of the phases of steps. A gradient that is computed as the update reads it (int8) counts
// as part of `update`.
struct StepTimes {
  double forward = 0.0, backward = 0.0, update = 0.0;
};

// The objects that a step works with.
struct Job {
  const TrainSpec& spec;
  const Recipe& recipe;
  const Task& task;
  Model& model;
  Optimizer& optimizer;
  Tape& tape;
  DataParallel* parallel;      // null: this process alone
  StepTimes* times = nullptr;  // if not null, seconds are added here

  std::int64_t step() const { return optimizer.steps_done() + 1; }
};

// Throws Error where --recompute is asked for a model that does not know it.
void check_recomputation(const TrainSpec& spec);

// Throws Error when a batch has fewer parts than asked for, or the recipe keeps no gradients to add
// up. The batch must be set.
void check_micro_batches(const TrainOptions& options, const Recipe& recipe);

// Returns which rows of a batch of so many are this rank's: [first, second).
std::pair<std::int64_t, std::int64_t> rows_of_rank(const TrainSpec& spec, const Communicator* ranks,
                                                   std::int64_t rows);

// Makes a step on the rows of `batch` that are this rank's; returns the sums of all ranks. Throws
// Diverged when a loss or a gradient is not finite, unless the recipe leaves such updates out.
BatchSums train_step(const Job& job, const Batch& batch);

}  // namespace tritgrad
