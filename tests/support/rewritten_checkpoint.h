// Checkpoints that say something else of their run, their hashes right.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/data/open_dataset.h"
#include "engine/files/checkpoint.h"
#include "models/training/train.h"

namespace tritgrad::test {

// Writes the checkpoint of a run of iris that was stopped after six steps, in its second epoch of
// four batches.
inline void save_stopped_run(const std::string& path) {
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:8";
  options.epochs = 3;
  options.batch = 32;
  options.save = path;
  options.stop_after = 6;
  train(open_dataset("iris"), options);
}

// Writes the checkpoint `from` to `to` with what edit(run) makes of the JSON of its run.
template <typename Edit>
void rewrite_checkpoint(const std::string& from, const std::string& to, const Edit& edit) {
  const SafetensorsFile file = SafetensorsFile::open(from);
  Metadata metadata = file.metadata();
  nlohmann::json run = nlohmann::json::parse(metadata.at("tritgrad.run"));
  edit(run);
  metadata["tritgrad.run"] = run.dump();
  write_safetensors(to, file.tensors(), metadata);
}

}  // namespace tritgrad::test
