#include "models/training/parallel_run.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/version.h"
#include "models/recipes/recipe.h"
#include "models/training/saved_run.h"
#include "models/training/training_step.h"
#include "optim/parallel/forecast.h"

namespace tritgrad {
namespace {

std::vector<ParameterSpec> plan_of(const ParameterStore& store) {
  std::vector<ParameterSpec> plan;
  for (const Parameter& parameter : store) plan.push_back(parameter.spec());
  return plan;
}

// Throws Error unless all ranks have the same program, data, options and recipe.
void check_same_job(const Dataset& dataset, const TrainOptions& options, const Recipe& recipe) {
  if (options.ranks == nullptr) return;
  const auto agree = [&](std::string_view what, const auto& value) {
    check_agreement(*options.ranks, what, concat(value));
  };
  const auto use = [](const std::string& path) { return path.empty() ? "no" : "yes"; };
  agree("version of tritgrad", version());
  agree("data (--data)", data_xxh3(dataset));
  agree("recipe (--recipe, --set)", recipe.toml);
  for (const auto& [field, text] : field_texts(options)) {
    if ((field.traits & (kOfData | kOfRecipe)) != 0) continue;
    agree(concat(field.what, " (", field.option, ")"), text);
  }
  agree("last step (--stop-after)", options.stop_after);
  agree("time between checkpoints (--save-every)", options.save_every);
  agree("choice whether to save (--save)", use(options.save));
  agree("choice whether to resume (--resume)", use(options.resume));
}

}  // namespace

Recipe joint_recipe(const ParallelSpec& spec, Recipe recipe) {
  if (spec.method == ParallelMethod::kNone) return recipe;
  const bool sums = spec.method == ParallelMethod::kAllreduce;
  check(sums || recipe.clip_grad_norm == 0.0, recipe.where,
        ": clip_grad_norm = ", recipe.clip_grad_norm,
        " needs the gradient itself, which only --dp allreduce exchanges; "
        "set clip_grad_norm to 0 or use --dp allreduce");
  if (!sums) recipe.gradient_format = FormatKind::kFp32;
  recipe.gradients = GradientPolicy::kReleased;
  for (Recipe::Group& group : recipe.groups) group.update = joint_group(spec, group.update);
  for (Recipe::NamedGroup& named : recipe.named_groups) {
    named.group.update = joint_group(spec, named.group.update);
  }
  return recipe;
}

Recipe recipe_of_job(const Dataset& dataset, const TrainOptions& options, const Recipe& alone) {
  check_same_job(dataset, options, alone);
  const Recipe recipe = joint_recipe(options.parallel, alone);
  check_micro_batches(options, recipe);
  check_recomputation(options);
  return recipe;
}

std::unique_ptr<DataParallel> make_parallel(const TrainOptions& options, const Recipe& recipe,
                                            Model& model, Optimizer& optimizer) {
  if (options.ranks == nullptr) return nullptr;
  check_votes_fit(plan_of(model.parameters()), recipe.updates(), options.parallel,
                  static_cast<int>(options.micro_batches));
  return std::make_unique<DataParallel>(*options.ranks, options.parallel, model.parameters(),
                                        optimizer, recipe.gradient_format);
}

Traffic traffic_of(const DataParallel& parallel, const TrainOptions& options, const Recipe& recipe,
                   const ParameterStore& store) {
  const DataParallel::Sent& sent = parallel.sent();
  const std::vector<ParameterSpec> plan = plan_of(store);
  const auto with_parts = [&](int parts) {
    return forecast_traffic(plan, recipe.updates(), options.parallel, options.ranks->size(), parts,
                            recipe.gradient_format);
  };
  const TrafficForecast forecast = with_parts(sent.parts);
  double forecast_of_all = 0.0;
  for (const auto& [kind, count] : sent.counts) {
    const TrafficForecast each = with_parts(kind.parts).with_warmup(kind.warmup ? 1.0 : 0.0);
    forecast_of_all += static_cast<double>(each.total() * count);
  }
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, sent.steps));
  const bool warming_up =
      options.parallel.method == ParallelMethod::kApmsqueeze && parallel.frozen_at() == 0;
  Traffic traffic;
  traffic.method = method_name(options.parallel.method);
  traffic.ranks = options.ranks->size();
  traffic.micro_batches = options.micro_batches;
  traffic.bytes_per_step = static_cast<double>(sent.total) / steps;
  traffic.forecast_per_step = forecast_of_all / steps;
  traffic.last_step_bytes = sent.last;
  traffic.last_step_forecast = forecast.with_warmup(warming_up ? 1.0 : 0.0).total();
  traffic.error_feedback_bytes = forecast.state;
  traffic.last_step_bytes_per_parameter =
      static_cast<double>(sent.last) / static_cast<double>(store.parameter_count());
  traffic.warmup_steps = parallel.warmup_steps();
  return traffic;
}

}  // namespace tritgrad
