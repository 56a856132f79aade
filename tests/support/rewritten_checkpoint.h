// Checkpoints that say something else of their run, their hashes right.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/files/checkpoint.h"

namespace tritgrad::test {

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
