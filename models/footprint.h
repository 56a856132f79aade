// Where every byte goes: forecast from formulas, and counted from what is really held.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/networks/model.h"

namespace tritgrad {

// Persistent bytes of one parameter, by category.
struct Footprint {
  std::int64_t weights = 0;
  std::int64_t scales = 0;
  std::int64_t residual = 0;
  std::int64_t moments = 0;
  std::int64_t gradients = 0;  // kept gradients; released ones have no bytes of their own

  std::int64_t total() const { return weights + scales + residual + moments + gradients; }
  Footprint& operator+=(const Footprint& other);
  Footprint& operator-=(const Footprint& other);
  friend bool operator==(const Footprint&, const Footprint&) = default;
};

// The categories by the ledger's names, in the order of tables, and the total as the last.
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
  // (one layer's matrix and scale).
  std::int64_t transient_gradient = 0;

  double per_parameter(std::int64_t bytes) const {
    return parameters == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(parameters);
  }
};

// From the formats' and rules' formulas; allocates nothing of the model, so any size will do.
ModelFootprint forecast_footprint(const std::vector<ParameterSpec>& plan, const Recipe& recipe);

// From the planes and buffers of a live model and its optimizer.
ModelFootprint live_footprint(Model& model, Optimizer& optimizer, const Recipe& recipe);

// What the ledger holds now in the five persistent categories.
Footprint ledger_footprint();

}  // namespace tritgrad
