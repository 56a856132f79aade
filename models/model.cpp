#include "models/model.h"

#include <algorithm>

#include "models/mlp.h"

namespace tritgrad {

std::vector<ParameterSpec> plan_model(const std::string& spec, std::int64_t inputs,
                                      std::int64_t outputs, const Recipe& recipe) {
  std::vector<ParameterSpec> plan = plan_mlp(fit_mlp(parse_mlp(spec), inputs, outputs), recipe);
  for (const Recipe::NamedGroup& named : recipe.named_groups) {
    const bool used = std::any_of(plan.begin(), plan.end(), [&](const ParameterSpec& parameter) {
      return parameter.role == named.role && matches(named.match, parameter.name);
    });
    check(used, "recipe '", recipe.name, "': [[group]] match = \"", named.match,
          "\" fits no parameter of model '", spec, "' with role ", role_name(named.role),
          "; names are like layers.0.weight and head.weight");
  }
  return plan;
}

std::unique_ptr<Model> make_model(const std::string& spec, std::int64_t inputs,
                                  std::int64_t outputs, const Recipe& recipe, std::uint64_t seed) {
  plan_model(spec, inputs, outputs, recipe);  // refuses what does not fit, before any memory
  auto model = std::make_unique<Mlp>(fit_mlp(parse_mlp(spec), inputs, outputs), recipe, seed);
  if (recipe.gradients == GradientPolicy::kKept) {
    model->parameters().keep_gradients(recipe.gradient_format);
  }
  return model;
}

Optimizer make_optimizer(Model& model, const Recipe& recipe, std::int64_t total_steps,
                         std::uint64_t seed) {
  return Optimizer(
      model.parameters(),
      [&](const ParameterSpec& parameter) {
        return recipe.group(parameter.name, parameter.role).update;
      },
      total_steps, seed, recipe.non_finite);
}

}  // namespace tritgrad
