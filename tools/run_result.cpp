#include "tools/run_result.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tritgrad {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json bytes_json(const BytesPerParameter& bytes) {
  return {{"weights", number(bytes.weights)},     {"scales", number(bytes.scales)},
          {"residual", number(bytes.residual)},   {"moments", number(bytes.moments)},
          {"gradients", number(bytes.gradients)}, {"total", number(bytes.total())}};
}

Json time_json(const TimeSpent& time) {
  return {{"preparing", number(time.preparing)},
          {"batches", number(time.batches)},
          {"steps", number(time.steps)},
          {"evaluation", number(time.evaluation)}};
}

Json curve_json(const std::vector<EpochPoint>& curve) {
  Json points = Json::array();
  for (const EpochPoint& point : curve) {
    points.push_back({{"epoch", number(point.epoch)},
                      {"train_loss", number(point.train_loss)},
                      {"train_accuracy", number(point.train_accuracy)},
                      {"val_accuracy", number(point.val_accuracy)}});
  }
  return points;
}

}  // namespace

std::string to_json(const RunResult& run) {
  Json json;
  json["data"] = run.data;
  json["model"] = run.model;
  json["recipe"] = run.recipe;
  json["compute"] = run.compute;
  json["seed"] = run.seed;
  json["epochs"] = run.epochs;
  json["steps"] = run.steps;
  json["seconds"] = number(run.seconds);
  json["time"] = time_json(run.time);
  json["parameters"] = run.parameters;
  json["train_loss"] = number(run.train_loss);
  json["val_accuracy"] = number(run.val_accuracy);
  json["test_accuracy"] = number(run.test_accuracy);
  if (run.folds > 0) {
    json["folds"] = run.folds;
    json["test_accuracy_std"] = number(run.test_accuracy_std);
  }
  json["zero_fraction"] = number(run.zero_fraction);
  json["flips_per_step"] = number(run.flips_per_step);
  json["movable_fraction"] = number(run.movable_fraction);
  json["skipped_updates"] = run.skipped_updates;
  json["bytes_per_parameter"] = bytes_json(run.bytes_per_parameter);
  json["peak_live_bytes"] = run.peak_live_bytes;
  json["weights_sha256"] = run.weights_sha256;
  json["curve"] = curve_json(run.curve);
  // File names may hold any bytes; JSON text may not.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const std::vector<RunResult>& runs) {
  std::string text = "[";
  for (std::size_t i = 0; i < runs.size(); ++i) text += (i == 0 ? "\n" : ",\n") + to_json(runs[i]);
  return text + "\n]";
}

}  // namespace tritgrad
