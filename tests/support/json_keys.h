// The keys of a JSON object, to be compared with all that FORMATS.md promises, and no more.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tritgrad::test {

inline std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

// The keys that every run has; some have others, too.
inline const std::set<std::string> kRunKeys{"data",
                                            "model",
                                            "recipe",
                                            "compute",
                                            "lr",
                                            "seed",
                                            "epochs",
                                            "batch",
                                            "steps",
                                            "seconds",
                                            "time",
                                            "parameters",
                                            "bytes_per_parameter",
                                            "train_loss",
                                            "val_accuracy",
                                            "test_accuracy",
                                            "zero_fraction",
                                            "flips_per_step",
                                            "movable_fraction",
                                            "skipped_updates",
                                            "warnings",
                                            "peak_live_bytes",
                                            "data_bytes",
                                            "weights_sha256",
                                            "optimizer_sha256",
                                            "curve"};

}  // namespace tritgrad::test
