#include "tools/report/traffic.h"

#include "engine/check.h"
#include "models/footprint.h"
#include "models/training/parallel_run.h"

namespace tritgrad {

TrafficForecast forecast_traffic(const std::string& model, const Recipe& recipe,
                                 const ParallelSpec& spec, int ranks, int parts) {
  return forecast_traffic(plan_model(model, 0, 0, recipe), recipe.updates(), spec, ranks, parts,
                          recipe.gradient_format);
}

double parameters_of(const std::string& model) {
  const Recipe recipe = load_recipe("fp32");
  return static_cast<double>(
      forecast_footprint(plan_model(model, 0, 0, recipe), recipe).parameters);
}

std::vector<TrafficWay> traffic_ways() {
  std::vector<TrafficWay> ways;
  const auto add = [&](const char* name, const char* recipe, ParallelMethod method,
                       const std::vector<std::string>& overrides = {}) -> TrafficWay& {
    ParallelSpec spec;
    spec.method = method;
    ways.push_back({name, joint_recipe(spec, load_recipe(recipe, overrides)), spec});
    return ways.back();
  };
  add("allreduce, fp32", "fp32", ParallelMethod::kAllreduce);
  add("allreduce, bf16", "fp32", ParallelMethod::kAllreduce, {"gradient_format=bf16"});
  add("votes: int8 gradients of latent8", "latent8", ParallelMethod::kVotes);
  add("votes: mean", "votes", ParallelMethod::kVotes);
  add("votes: majority", "votes", ParallelMethod::kVotes).spec.majority = true;
  TrafficWay whole = add("apmsqueeze", "fp32", ParallelMethod::kApmsqueeze);
  whole.warmup = *whole.spec.warmup;
  whole.name = concat("apmsqueeze with its warm-up, ", whole.warmup, " of the steps");
  ways.push_back(std::move(whole));
  return ways;
}

TrafficForecast forecast_traffic(const TrafficWay& way, const std::string& model, int ranks,
                                 int parts) {
  return forecast_traffic(model, way.recipe, way.spec, ranks, parts).with_warmup(way.warmup);
}

bool can_have(const TrafficWay& way, const std::string& model, int parts) {
  return votes_fit(plan_model(model, 0, 0, way.recipe), way.recipe.updates(), way.spec, parts);
}

double fp16_bytes(double parameters, int ranks) { return 4.0 * parameters * (ranks - 1) / ranks; }

}  // namespace tritgrad
