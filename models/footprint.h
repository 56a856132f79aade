// The bytes of a model and its optimizer: forecast by formulas, and counted from its memory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/bytes_by_category.h"
#include "models/networks/model.h"

namespace tritgrad {

// Returns the categories by the ledger's names, in the order of tables, and the total as the last.
std::vector<std::pair<std::string, std::int64_t>> named_bytes(const Footprint& footprint);

struct TensorFootprint {
  ParameterSpec spec;
  std::string rule;  // empty for statistics
  Footprint bytes;
};

struct ModelFootprint {
  std::vector<TensorFootprint> tensors;
  Footprint total;
  std::int64_t parameters = 0;  // trainable elements, scales not counted
  Compute compute = Compute::kFp32;
  GradientPolicy gradients = GradientPolicy::kReleased;
  FormatKind gradient_format = FormatKind::kFp32;  // of kept gradients
  // Gradients that are not kept in fp32: the largest set of fp32 gradients that exists at one time
  // (one layer's matrix and scale, and those that wait, see ParameterSpec::gradient_waits).
  std::int64_t transient_gradient = 0;
  std::int64_t waiting_gradient = 0;  // of those that wait

  double per_parameter(std::int64_t bytes) const {
    return parameters == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(parameters);
  }
};

// Returns the bytes of all matrices of weights (Role::kWeight), their scales included, divided by
// the number of weights; embeddings, norms and biases are left out. Absent without such matrices.
std::optional<double> bytes_per_weight(const ModelFootprint& model);

// Forecasts by the formulas of formats and rules; allocates nothing of the model, so any size will
// do.
ModelFootprint forecast_footprint(const std::vector<ParameterSpec>& plan, const Recipe& recipe);

// Counts the planes and buffers of a live model and its optimizer.
ModelFootprint live_footprint(Model& model, Optimizer& optimizer, const Recipe& recipe);

// Returns the bytes that the ledger holds now, without those that it held `before`.
Footprint ledger_footprint(const Footprint& before = {});

}  // namespace tritgrad
