#include "models/footprint.h"

#include <algorithm>

namespace tritgrad {
namespace {

std::string rule_of(const ParameterSpec& spec, const Recipe& recipe) {
  if (!spec.trainable()) return "";
  return std::string(rule_name(recipe.group(spec.name, spec.role).update.rule.kind));
}

std::int64_t gradient_bytes(const ParameterSpec& spec, FormatKind format) {
  const std::int64_t element = format == FormatKind::kBf16 ? 2 : 4;
  return spec.trainable() ? spec.shape.size() * element : 0;
}

void add_tensor(ModelFootprint& model, TensorFootprint tensor) {
  Footprint::visit(tensor.bytes,
                   [&](Category category, std::int64_t bytes) { model.total[category] += bytes; });
  if (tensor.spec.counted()) model.parameters += tensor.spec.shape.size();
  // Gradients kept in fp32 are made where they stay; all others are made elsewhere first.
  if (model.gradients == GradientPolicy::kReleased || model.gradient_format != FormatKind::kFp32) {
    // A matrix and its scale, which follows it, become ready together. Vectors are too small to
    // count.
    const auto made = [&](const ParameterSpec& spec) {
      // The gradient of a ternary matrix in integers is computed where the update reads it.
      const bool read_in_pieces =
          model.compute == Compute::kInt8 && spec.format.traits().holds_trits &&
          model.gradients == GradientPolicy::kReleased && !spec.gradient_in_parts;
      return read_in_pieces ? 0 : gradient_bytes(spec, FormatKind::kFp32);
    };
    const std::int64_t own = made(tensor.spec);
    const bool follows = !model.tensors.empty() && tensor.spec.role == Role::kScale;
    const std::int64_t partner = follows ? made(model.tensors.back().spec) : 0;
    // Those that wait are planned first.
    if (tensor.spec.gradient_waits) model.waiting_gradient += own;
    model.transient_gradient =
        std::max(model.transient_gradient,
                 model.waiting_gradient + (tensor.spec.gradient_waits ? 0 : own + partner));
  }
  model.tensors.push_back(std::move(tensor));
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> named_bytes(const Footprint& footprint) {
  std::vector<std::pair<std::string, std::int64_t>> named;
  Footprint::visit(footprint, [&](Category category, std::int64_t bytes) {
    named.emplace_back(category_name(category), bytes);
  });
  named.emplace_back("total", footprint.total());
  return named;
}

std::optional<double> bytes_per_weight(const ModelFootprint& model) {
  std::int64_t bytes = 0, weights = 0;
  for (const TensorFootprint& tensor : model.tensors) {
    const bool is_weight = tensor.spec.role == Role::kWeight;
    if (is_weight) weights += tensor.spec.shape.size();
    if (is_weight || tensor.spec.role == Role::kScale) bytes += tensor.bytes.total();
  }
  if (weights == 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(weights);
}

ModelFootprint forecast_footprint(const std::vector<ParameterSpec>& plan, const Recipe& recipe) {
  ModelFootprint model;
  model.compute = recipe.compute;
  model.gradients = recipe.gradients;
  model.gradient_format = recipe.gradient_format;
  for (const ParameterSpec& spec : plan) {
    TensorFootprint tensor{spec, rule_of(spec, recipe), {}};
    for (const PlaneSpec& plane :
         Storage::plane_specs(spec.format, spec.shape, role_category(spec.role))) {
      tensor.bytes[plane.category] += plane.bytes();
    }
    if (spec.trainable()) {
      const GroupSpec& update = recipe.group(spec.name, spec.role).update;
      tensor.bytes.moments = Optimizer::state_bytes(spec, update);
      if (recipe.gradients == GradientPolicy::kKept) {
        tensor.bytes.gradients = gradient_bytes(spec, recipe.gradient_format);
      }
    }
    add_tensor(model, std::move(tensor));
  }
  return model;
}

ModelFootprint live_footprint(Model& model, Optimizer& optimizer, const Recipe& recipe) {
  ModelFootprint live;
  live.compute = recipe.compute;
  live.gradients = recipe.gradients;
  live.gradient_format = recipe.gradient_format;
  const std::vector<NamedArray> state = optimizer.state();
  for (const Parameter& parameter : model.parameters()) {
    TensorFootprint tensor{parameter.spec(), rule_of(parameter.spec(), recipe), {}};
    for (const Plane& plane : parameter.storage().planes()) {
      tensor.bytes[plane.spec.category] += std::ssize(plane.bytes);
    }
    for (const NamedArray& plane : state) {
      if (!plane.name.starts_with(parameter.name() + "/")) continue;
      tensor.bytes.moments += std::ssize(plane.bytes);
    }
    if (parameter.gradient_is_kept()) {
      tensor.bytes.gradients = bytes_of(*parameter.kept_gradient());
    }
    add_tensor(live, std::move(tensor));
  }
  return live;
}

Footprint ledger_footprint(const Footprint& before) {
  Footprint held = before;
  Footprint::visit(
      held, [](Category category, std::int64_t& bytes) { bytes = ledger::live(category) - bytes; });
  return held;
}

}  // namespace tritgrad
