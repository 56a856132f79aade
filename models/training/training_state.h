// Everything that changes while training, and its checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/data/standardizer.h"
#include "engine/files/atomic_file.h"
#include "engine/files/checkpoint.h"
#include "models/footprint.h"
#include "models/training/run_result.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "optim/parallel/data_parallel.h"

namespace tritgrad {

class TrainingState {
 public:
  TrainingState(Model& model, Optimizer& optimizer, Loader& loader,
                const Standardizer& standardizer, const TargetScale& target_scale,
                const Dataset& dataset, const TrainOptions& options, const Recipe& recipe,
                DataParallel* parallel = nullptr);

  // Counts a step on so many rows, of all ranks.
  void add(const BatchSums& step, std::int64_t rows);
  const EpochSums& sums() const { return sums_; }
  const std::vector<EpochPoint>& curve() const { return curve_; }
  // Returns the trits that changed since the run began, in another process maybe.
  std::int64_t flips() const { return total_flips_ + sums_.flips; }
  // Appends the epoch's mean loss and its scores to the curve and starts new sums.
  void end_epoch(double train_score, std::optional<double> val_score);

  // Is called on all ranks of a data-parallel run; the first one writes, once all agree in every
  // weight.
  //
  // A run that is saved, loaded into fresh objects and continued ends with the same bits as one
  // that was not interrupted.
  void save();
  // Writes a checkpoint to another file, which is kept from other writers only meanwhile. Throws
  // Error for a file that is no checkpoint, and for a run of several ranks.
  void save_copy(const std::string& path);
  // Returns the bytes of such a file. Throws Error for a run of several ranks.
  std::vector<std::byte> checkpoint_bytes();
  void load(const SavedRun& saved);

  // Fills in what the state knows: losses, counts, bytes, hashes.
  void describe(RunResult& result);

 private:
  void save_whole();
  void write(AtomicFile& file);
  void write(const ByteSink& sink, const std::string& name);
  std::vector<NamedArray> optimizer_planes();
  std::vector<NamedArray> planes();
  RunPosition position() const;

  Model* model_;
  Optimizer* optimizer_;
  Loader* loader_;
  const Dataset* dataset_;
  std::string data_xxh3_;  // empty before the first save: all rows are read for it
  TrainOptions options_;
  Recipe recipe_;
  DataParallel* parallel_;
  std::vector<float> means_;
  std::vector<float> inverse_stds_;
  TargetScale target_scale_;
  std::string tokenizer_;  // of a text in pieces: the contents of its file
  EpochSums sums_;
  std::int64_t total_flips_ = 0;
  double saving_seconds_ = 0.0;
  std::vector<EpochPoint> curve_;
  // Only the rank that writes has one, and only where something is to be saved.
  std::optional<AtomicFile> checkpoint_;
};

// Returns a result with everything that is known before training.
RunResult describe_run(const Dataset& dataset, const TrainSpec& spec, const Recipe& recipe,
                       const Model& model);

}  // namespace tritgrad
