#include "models/model.h"

#include "models/mlp.h"

namespace tritgrad {

std::vector<ParameterSpec> plan_model(const std::string& spec, std::int64_t inputs,
                                      std::int64_t outputs, const Recipe& recipe) {
  return plan_mlp(fit_mlp(parse_mlp(spec), inputs, outputs), recipe);
}

std::unique_ptr<Model> make_model(const std::string& spec, std::int64_t inputs,
                                  std::int64_t outputs, const Recipe& recipe, std::uint64_t seed) {
  auto model = std::make_unique<Mlp>(fit_mlp(parse_mlp(spec), inputs, outputs), recipe, seed);
  if (recipe.gradients == GradientPolicy::kKept) model->parameters().keep_gradients();
  return model;
}

Optimizer make_optimizer(Model& model, const Recipe& recipe, std::int64_t total_steps,
                         std::uint64_t seed) {
  return Optimizer(
      model.parameters(),
      [&](const ParameterSpec& parameter) { return recipe.group(parameter.role).update; },
      total_steps, seed);
}

}  // namespace tritgrad
