// Where every byte goes: forecast from formulas, and counted from what is really held.
#pragma once

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "models/networks/model.h"

namespace tritgrad {

// The categories of bytes that stay with a parameter from step to step, in their order.
inline constexpr std::array kParameterCategories = {Category::kWeights, Category::kScales,
                                                    Category::kResiduals, Category::kMoments,
                                                    Category::kGradients};

// Persistent bytes of one parameter, or of many, by category. Released gradients have no bytes of
// their own.
struct Footprint {
  std::array<std::int64_t, kParameterCategories.size()> bytes{};

  // Throw Error for a category that does not belong to a parameter.
  std::int64_t& operator[](Category category) { return bytes[place(category)]; }
  std::int64_t operator[](Category category) const { return bytes[place(category)]; }
  std::int64_t total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  }
  Footprint& operator+=(const Footprint& other);
  Footprint& operator-=(const Footprint& other);
  friend bool operator==(const Footprint&, const Footprint&) = default;

 private:
  static std::size_t place(Category category);
};

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
