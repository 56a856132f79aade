// Whether an exported network computes what its model does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "models/export/inference_network.h"
#include "models/training/evaluate.h"
#include "models/training/metric.h"

namespace tritgrad {

struct SelfCheck {
  std::int64_t rows = 0;
  std::int64_t differing_rows = 0;     // whose outputs differ by more than tolerance()
  std::int64_t differing_classes = 0;  // rows that are taken for another class
  double largest_difference = 0.0;     // of two outputs
  std::int64_t broken_row = -1;        // the first for which the model has no finite outputs
  Metric metric = Metric::kAccuracy;
  double score_before = 0.0;  // of the model
  double score_after = 0.0;   // of the network

  // Other classes are let pass where logits in floats agree as well as they can.
  bool passed() const { return rows > 0 && differing_rows == 0; }
};

// Compares the outputs of the network with those of the model that it describes on rows of the
// data.
SelfCheck check_network(const InferenceNetwork& network, const LoadedModel& loaded,
                        const Dataset& dataset, std::span<const std::int32_t> rows);

// Throws Error, which says where or by how much, unless the file `to` may be written.
void require_passed(const SelfCheck& result, const std::string& to, const std::string& data);

}  // namespace tritgrad
