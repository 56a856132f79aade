#include "models/networks/layer_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tritgrad {
namespace {

ParameterSpec vector_spec(const std::string& name, Role role, std::int64_t size, float value,
                          const Recipe& recipe) {
  const FormatSpec format =
      role == Role::kStatistic ? FormatSpec{} : recipe.group(name, role).format;
  return {name, role, {size}, format, {Initial::Kind::kConstant, value}};
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::int64_t parse_width(const std::string& text, const std::string& where, const char* hint) {
  std::int64_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  check(
      error == std::errc() && end == text.data() + text.size() && width > 0 && width <= kMostWidth,
      "model '", where, "': width '", text, "' is not a whole number in 1..16777216", hint);
  return width;
}

float parse_dropout(const std::string& text) {
  float share = 0.0f;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  check(error == std::errc() && end == text.data() + text.size() && share >= 0.0f && share < 1.0f,
        "dropout '", text, "' is not a number in [0, 1)");
  return share;
}

void for_each_option(
    const std::string& text, const std::vector<std::string>& parts,
    const std::function<void(const std::string& key, const std::string& value)>& body) {
  std::vector<std::string> keys;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string key = parts[i].substr(0, equals);
    check(std::find(keys.begin(), keys.end(), key) == keys.end(), "model '", text, "': '", key,
          "' is named twice; leave one out");
    keys.push_back(key);
    try {
      body(key, equals == std::string::npos ? "" : parts[i].substr(equals + 1));
    } catch (const Error& error) {
      fail("model '", text, "': ", error.what());
    }
  }
}

std::string layer_name(std::size_t index) { return "layers." + std::to_string(index); }

// E[T^2] = 2/3 for trits that begin as round(u), u uniform on +-1.5.
void plan_matrix(const std::string& prefix, std::int64_t inputs, std::int64_t outputs, float gain,
                 const Recipe& recipe, std::vector<ParameterSpec>& plan, GradientComes gradient) {
  const FormatSpec& format = recipe.group(prefix + ".weight", Role::kWeight).format;
  const float fan_in = static_cast<float>(inputs);
  const Initial trits{Initial::Kind::kUniform, 1.5f};
  const Initial dense{Initial::Kind::kNormal, gain / std::sqrt(fan_in)};
  plan.push_back({prefix + ".weight",
                  Role::kWeight,
                  {outputs, inputs},
                  format,
                  format.traits().holds_trits ? trits : dense});
  plan.back().gradient_in_parts = gradient == GradientComes::kParts;
  if (!format.traits().holds_trits) return;
  const std::int64_t groups = format.group == 0 ? 1 : (inputs + format.group - 1) / format.group;
  plan.push_back({prefix + ".scale",
                  Role::kScale,
                  {outputs, groups},
                  recipe.group(prefix + ".scale", Role::kScale).format,
                  {Initial::Kind::kConstant, gain / std::sqrt(fan_in * 2.0f / 3.0f)}});
}

void plan_norm(const std::string& prefix, Norm norm, std::int64_t width, const Recipe& recipe,
               std::vector<ParameterSpec>& plan) {
  if (norm == Norm::kNone) {
    return plan_bias(prefix, width, recipe, plan);
  }
  plan.push_back(vector_spec(prefix + ".norm.gain", Role::kNorm, width, 1.0f, recipe));
  if (norm == Norm::kRms) return;
  plan.push_back(vector_spec(prefix + ".norm.bias", Role::kNorm, width, 0.0f, recipe));
  if (norm == Norm::kLayer) return;
  plan.push_back(vector_spec(prefix + ".norm.running_mean", Role::kStatistic, width, 0.0f, recipe));
  plan.push_back(vector_spec(prefix + ".norm.running_var", Role::kStatistic, width, 1.0f, recipe));
}

void plan_bias(const std::string& prefix, std::int64_t width, const Recipe& recipe,
               std::vector<ParameterSpec>& plan) {
  plan.push_back(vector_spec(prefix + ".bias", Role::kBias, width, 0.0f, recipe));
}

void plan_embedding(const std::string& prefix, std::int64_t tokens, std::int64_t width,
                    const Recipe& recipe, std::vector<ParameterSpec>& plan) {
  const std::string name = prefix + ".weight";
  plan.push_back({name,
                  Role::kEmbedding,
                  {tokens, width},
                  recipe.group(name, Role::kEmbedding).format,
                  {Initial::Kind::kNormal, 1.0f / std::sqrt(static_cast<float>(width))}});
}

LayerParameters bind_layer(ParameterStore& parameters, const std::string& prefix) {
  const auto find = [&](const char* suffix) -> Parameter* {
    const std::string name = prefix + suffix;
    for (Parameter& parameter : parameters) {
      if (parameter.name() == name) return &parameter;
    }
    return nullptr;
  };
  return {find(".weight"),
          find(".scale"),
          find(".bias"),
          {find(".norm.gain"), find(".norm.bias"), find(".norm.running_mean"),
           find(".norm.running_var")}};
}

}  // namespace tritgrad
