// Training one model on one split, or on all folds: the job behind `tritgrad train` and `compare`.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/dataset.h"
#include "engine/data/split.h"
#include "models/training/observer.h"
#include "models/training/run_result.h"
#include "models/training/train_spec.h"

namespace tritgrad {

// Options that surround a run and change nothing of its result.
struct RunControl {
  std::string save;               // checkpoint, written after every epoch; empty: none
  std::int64_t save_every = 0;    // also every so many steps; 0: no
  std::string resume;             // checkpoint to continue from; empty: start anew
  std::int64_t stop_after = 0;    // stop (and save) after so many steps in all; 0: never
  Communicator* ranks = nullptr;  // of the job; all of them train with the same options
  Observer* observer = nullptr;   // null: nobody watches
};

struct TrainOptions : TrainSpec, RunControl {};

TrainOptions with_defaults(TrainOptions options, const Dataset& dataset);

// Trains on split.train, watches split.val, and looks at split.test once, at the end. Epochs and
// batch must be set; without a label smoothing there is none, without `pixels` they are linear.
// Throws Interrupted where the observer asks for it: before it begins, or when a step is done.
RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options);

// Trains as the options say, with defaults by the data: on the fixed split, or on all folds, whose
// mean is returned.
RunResult train(const Dataset& dataset, const TrainOptions& options);

}  // namespace tritgrad
