#include "models/networks/model.h"

#include <algorithm>

#include "engine/text.h"
#include "models/networks/conv_net.h"
#include "models/networks/llama.h"
#include "models/networks/mlp.h"

namespace tritgrad {

namespace {

enum class Kind { kMlp, kConv, kLlama };

Kind kind_of(const std::string& spec) {
  const std::string kind = spec.substr(0, spec.find(':'));
  const std::vector<std::string> kinds{"mlp", "conv", "llama"};
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  check(found != kinds.end() && kind.size() < spec.size(), "model '", spec,
        "': expected mlp:WIDTH,... such as mlp:512,512, conv:WIDTH,M,... such as conv:32,M,64,M, "
        "or, for text, llama:LAYERS,WIDTH such as llama:4,256",
        found == kinds.end() ? did_you_mean(kind, kinds) : "");
  return static_cast<Kind>(found - kinds.begin());
}

std::vector<ParameterSpec> plan_kind(const std::string& spec, const ModelInput& input,
                                     std::int64_t outputs, const Recipe& recipe) {
  switch (kind_of(spec)) {
    case Kind::kConv:
      return plan_conv(fit_conv(parse_conv(spec), input, outputs), recipe);
    case Kind::kLlama:
      return plan_llama(fit_llama(parse_llama(spec), input, outputs), recipe);
    case Kind::kMlp:
      break;
  }
  return plan_mlp(fit_mlp(parse_mlp(spec), input.features, outputs), recipe);
}

std::unique_ptr<Model> make_kind(const std::string& spec, const ModelInput& input,
                                 std::int64_t outputs, const Recipe& recipe,
                                 std::optional<std::uint64_t> seed) {
  switch (kind_of(spec)) {
    case Kind::kConv:
      return std::make_unique<ConvNet>(fit_conv(parse_conv(spec), input, outputs), recipe, seed);
    case Kind::kLlama:
      return std::make_unique<Llama>(fit_llama(parse_llama(spec), input, outputs), recipe, seed);
    case Kind::kMlp:
      break;
  }
  return std::make_unique<Mlp>(fit_mlp(parse_mlp(spec), input.features, outputs), recipe, seed);
}

}  // namespace

std::vector<ParameterSpec> plan_model(const std::string& spec, const ModelInput& input,
                                      std::int64_t outputs, const Recipe& recipe) {
  std::vector<ParameterSpec> plan = plan_kind(spec, input, outputs, recipe);
  for (const Recipe::NamedGroup& named : recipe.named_groups) {
    const bool used = std::any_of(plan.begin(), plan.end(), [&](const ParameterSpec& parameter) {
      return parameter.role == named.role && matches(named.match, parameter.name);
    });
    check(used, recipe.where, ": [[group]] match = \"", named.match,
          "\" fits no parameter of model '", spec, "' with role ", role_name(named.role),
          "; names are like layers.0.weight and head.weight");
  }
  return plan;
}

double products_per_row(const std::string& spec, const ModelInput& input, std::int64_t outputs,
                        const Recipe& recipe) {
  if (kind_of(spec) == Kind::kConv) {
    return conv_products_per_row(fit_conv(parse_conv(spec), input, outputs));
  }
  double products = 0.0;
  for (const ParameterSpec& parameter : plan_model(spec, input, outputs, recipe)) {
    if (parameter.role == Role::kWeight) products += static_cast<double>(parameter.shape.size());
  }
  return kind_of(spec) == Kind::kLlama ? products * static_cast<double>(context_of(spec))
                                       : products;
}

bool has_dropout(const std::string& spec) {
  switch (kind_of(spec)) {
    case Kind::kConv:
      return parse_conv(spec).dropout > 0.0f;
    case Kind::kMlp:
      return parse_mlp(spec).dropout > 0.0f;
    case Kind::kLlama:
      break;
  }
  return false;
}

std::unique_ptr<Model> make_model(const std::string& spec, const ModelInput& input,
                                  std::int64_t outputs, const Recipe& recipe,
                                  std::optional<std::uint64_t> seed) {
  plan_model(spec, input, outputs, recipe);  // refuses what does not fit, before any memory
  std::unique_ptr<Model> model = make_kind(spec, input, outputs, recipe, seed);
  if (recipe.gradients == GradientPolicy::kKept) {
    model->parameters().keep_gradients(recipe.gradient_format);
  }
  return model;
}

Optimizer make_optimizer(Model& model, const Recipe& recipe, std::int64_t total_steps,
                         std::uint64_t seed) {
  return Optimizer(model.parameters(), recipe.updates(), total_steps, seed, recipe.non_finite);
}

}  // namespace tritgrad
