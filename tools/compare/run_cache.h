// Finished runs are kept under a key that holds all that decides their result, so that an
// interrupted comparison goes on where it was and a finished one costs nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/data/dataset.h"
#include "models/training/run_result.h"
#include "models/training/train_spec.h"

namespace tritgrad {

enum class RunPurpose {
  kTest,    // trains as train() does, and looks at the test rows once
  kTuning,  // looks at the validation rows alone, never at the test rows
};

// Returns everything that decides what a run computes, as one line of JSON: data, rows, recipe,
// model, schedule, seed, version, kernels. Code that changed counts as far as recorded trajectories
// change with it (models/training/trajectory.h). Overrides that change nothing are left out.
// `data_hash` is that of data_xxh3(). Epochs and batch must be set.
std::string run_key(const Dataset& dataset, const std::string& data_hash, const TrainSpec& spec,
                    RunPurpose purpose);

// Each run has one file, FOLDER/<SHA-256 of the key>.json, which holds the key and the result.
class RunCache {
 public:
  // An empty folder keeps nothing; `fresh` finds nothing, and replaces what is there.
  explicit RunCache(std::filesystem::path folder, bool fresh = false);

  // Files that are damaged, or of another run or program, count as absent.
  std::optional<RunResult> find(const std::string& key) const;
  // Makes the folder where it is missing. Leaves it to another comparison that is writing the same
  // run at this moment. Throws Error when the file cannot be written.
  void store(const std::string& key, const RunResult& run) const;

 private:
  std::filesystem::path path_of(const std::string& key) const;

  std::filesystem::path folder_;
  bool fresh_;
};

}  // namespace tritgrad
