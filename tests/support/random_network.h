// Models and networks of random numbers, everywhere: also in norms, statistics and scales.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/export/inference_network.h"
#include "tests/support/support.h"

namespace tritgrad::test {

inline std::vector<float> positive_numbers(std::int64_t count, std::uint32_t stream) {
  std::vector<float> values = numbers(count, stream);
  for (float& x : values) x = std::abs(x) + 0.01f;
  return values;
}

// Returns a model of this plan with its weights of `seed`, and a standardiser.
inline LoadedModel random_model(SavedModel plan, std::uint32_t seed) {
  auto model = make_model(plan.model, plan.input, plan.outputs, plan.recipe, seed);
  for (Parameter& parameter : model->parameters()) {
    if (parameter.spec().role == Role::kWeight) continue;
    const bool positive =
        parameter.name().ends_with("var") || parameter.spec().role == Role::kScale;
    encode_all(parameter.storage(),
               positive ? positive_numbers(parameter.shape().size(), parameter.stream())
                        : numbers(parameter.shape().size(), parameter.stream()));
  }
  const std::int64_t inputs = plan.input.features;
  return {std::move(plan), std::move(model), {numbers(inputs, 21), positive_numbers(inputs, 22)}};
}

// Describes it.
inline InferenceNetwork network_of(const LoadedModel& loaded,
                                   std::vector<std::string> class_names) {
  return {.inputs = loaded.plan.input.features,
          .class_names = std::move(class_names),
          .means = loaded.standardizer.means(),
          .inverse_stds = loaded.standardizer.inverse_stds(),
          .layers = describe_layers(loaded.plan, *loaded.model)};
}

}  // namespace tritgrad::test
