#include "tools/inspect/inspection.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tritgrad {

ModelFootprint allocate_and_count(const SavedModel& plan, const std::function<void()>& meanwhile) {
  const auto model = make_model(plan.model, plan.input, plan.outputs, plan.recipe, 1);
  Optimizer optimizer = make_optimizer(*model, plan.recipe, 1, 1);
  ModelFootprint live = live_footprint(*model, optimizer, plan.recipe);
  meanwhile();
  return live;
}

Inspection inspect_saved(const SavedRun& run) {
  const SavedModel plan = run.model();
  std::optional<TableSchema> table = run.table();
  if (table && table->table_columns == 0) table.reset();  // it is that of a built-in set
  return {plan.model,
          plan.recipe,
          forecast_footprint(plan_model(plan.model, plan.input, plan.outputs, plan.recipe),
                             plan.recipe),
          std::nullopt,
          std::nullopt,
          std::move(table)};
}

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Footprint& footprint) {
  Json json;
  for (const auto& [name, bytes] : named_bytes(footprint)) json[name] = bytes;
  return json;
}

Json to_json(const JointForecast& joint) {
  return {{"method", method_name(joint.spec.method)},
          {"ranks", joint.ranks},
          {"gradient_bytes", joint.traffic.gradients},
          {"warmup_gradient_bytes", joint.traffic.warmup},
          {"warmup_share", joint.traffic.warmup > 0 ? *joint.spec.warmup : 0.0},
          {"statistics_bytes", joint.traffic.statistics},
          {"sums_bytes", joint.traffic.sums},
          {"bytes_per_step", joint.mean().total()},
          {"last_step_bytes", joint.traffic.total()},
          {"error_feedback_bytes", joint.traffic.state}};
}

}  // namespace

std::string to_json(const Inspection& inspection) {
  const ModelFootprint& f = inspection.forecast;
  Json json;
  json["model"] = inspection.model;
  json["recipe"] = inspection.recipe.name;
  json["parameters"] = f.parameters;
  json["gradient_policy"] = f.gradients == GradientPolicy::kKept ? "kept" : "released";
  json["gradient_format"] = format_name(f.gradient_format);
  json["transient_gradient_bytes"] = f.transient_gradient;
  json["forecast_bytes"] = to_json(f.total);
  if (inspection.live) json["live_bytes"] = to_json(inspection.live->total);
  for (const auto& [name, bytes] : named_bytes(f.total)) {
    json["bytes_per_parameter"][name] = f.per_parameter(bytes);
  }
  for (const TensorFootprint& t : f.tensors) {
    json["tensors"].push_back({{"name", t.spec.name},
                               {"role", role_name(t.spec.role)},
                               {"rows", t.spec.shape.rows()},
                               {"cols", t.spec.shape.cols()},
                               {"format", format_name(t.spec.format.kind)},
                               {"rule", t.rule},
                               {"bytes", to_json(t.bytes)}});
  }
  if (inspection.joint) json["traffic"] = to_json(*inspection.joint);
  if (inspection.exported) json["export"] = to_json(*inspection.exported);
  if (inspection.table) json["table"] = Json::parse(to_json(*inspection.table));
  return json.dump(2);
}

}  // namespace tritgrad
