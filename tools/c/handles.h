// What the handles of tritgrad.h hold.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "models/training/evaluate.h"
#include "models/training/train.h"
#include "tools/c/tritgrad.h"

struct tg_data {
  tritgrad::Dataset dataset;
  tritgrad::TrainSpec spec;   // how it was read
  bool is_of_arrays = false;  // which cannot be read again
  std::string description = {};
};

struct tg_run : tritgrad::Observer {
  tritgrad::TrainOptions options;
  tritgrad::Split split;
  const tg_data* data = nullptr;
  std::optional<tritgrad::TrainingRun> run;
  std::string result;
  tg_observer observer = nullptr;
  void* context = nullptr;
  std::int64_t total_steps = 0;
  bool ended = false;  // by the observer, after the last step

  void begin(const tritgrad::RunStart& start) override;
  void step(const tritgrad::StepReport& report) override;
  bool interrupted() override;
};

struct tg_model {
  std::vector<std::byte> bytes;  // of the checkpoint, where it is not a file
  tritgrad::SavedRun saved;
  tritgrad::LoadedModel loaded = load_model(saved);
  std::optional<tritgrad::Dataset> rows = {};  // by which exports are checked
  bool rows_have_labels = false;
  // What functions returned last:
  std::string description = {}, inspection = {}, report = {};
};

namespace tritgrad {

// Opens a checkpoint that lies in memory.
tg_model* model_of_bytes(std::vector<std::byte> bytes);

// Throws Error, which tells the inputs of the model, for rows of another number of features, and
// for a language model, which reads no rows.
void check_features(const tg_model& model, std::int64_t features);

}  // namespace tritgrad
