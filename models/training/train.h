// Training one model on one split, or on all folds: the job behind `tritgrad train` and `compare`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// A run whose caller decides when its steps are made; train() makes all of them.
class TrainingRun {
 public:
  // Prepares a run on split.train, from its first step or from a checkpoint. The data, the split
  // and the observer must outlive it. Epochs and batch must be set; without a label smoothing there
  // is none, without `pixels` they are linear. Throws Error for what cannot be trained, and
  // Interrupted where the observer asks for it.
  TrainingRun(const Dataset& dataset, const Split& split, const TrainOptions& options);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Returns whether all steps are done, or as many as RunControl::stop_after says.
  bool is_over() const;
  // Makes a step, and what is due behind it: a look at split.val when an epoch ends, a checkpoint.
  // Throws Diverged, and Interrupted where the observer asks for it.
  void step();
  // Looks at split.test, once, and returns the result. No step may follow.
  RunResult finish();

  // Returns the point of every epoch that is over, those before a resumed checkpoint too.
  const std::vector<EpochPoint>& curve() const;
  // Writes a checkpoint to a file that is not RunControl::save, which is written by itself.
  void save_copy(const std::string& path);
  // Returns the bytes of such a file.
  std::vector<std::byte> checkpoint_bytes();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Trains on split.train, watches split.val, and looks at split.test once, at the end. Epochs and
// batch must be set; without a label smoothing there is none, without `pixels` they are linear.
// Throws Interrupted where the observer asks for it: before it begins, or when a step is done.
RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options);

// Trains as the options say, with defaults by the data: on the fixed split, or on all folds, whose
// mean is returned.
RunResult train(const Dataset& dataset, const TrainOptions& options);

}  // namespace tritgrad
