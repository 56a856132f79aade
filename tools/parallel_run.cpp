#include "tools/parallel_run.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/parse_number.h"
#include "models/recipe.h"
#include "optim/parallel/forecast.h"
#include "tools/training_state.h"

namespace tritgrad {
namespace {

std::optional<double> parse_warmup(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const std::optional<double> share = parse_number(text);
  check(share && *share > 0.0 && *share <= 1.0, "--dp-warmup: '", text,
        "' is no share of the steps; give a number above 0, at most 1, or auto");
  return share;
}

Compression parse_scale(const std::string& text) {
  check(text == "mean" || text == "rms", "--dp-scale: '", text, "', expected mean or rms");
  return text == "mean" ? Compression::kSign : Compression::kSignRms;
}

ParallelSpec parse(const ParallelOptions& options) {
  ParallelSpec spec;
  spec.method = parse_method(options.method);
  spec.majority = options.majority;
  spec.warmup = parse_warmup(options.warmup);
  spec.squeeze = parse_scale(options.scale);
  check(!spec.majority || spec.method == ParallelMethod::kVotes,
        "--dp-majority is a way to count votes; it needs --dp votes");
  return spec;
}

}  // namespace

void add_parallel_options(CLI::App& command, ParallelOptions& options) {
  command.add_option("--dp", options.method,
                     "train on all processes that mpirun started: allreduce (gradients), votes "
                     "(sign votes as integers), apmsqueeze (Adam's momentum in 1 bit) [none]");
  command.add_flag("--dp-majority", options.majority,
                   "votes: move by the majority rather than by the mean vote");
  command
      .add_option("--dp-warmup", options.warmup,
                  "apmsqueeze: share of the steps in full precision, or auto: until the second "
                  "moment is stable")
      ->capture_default_str();
  command.add_option("--dp-scale", options.scale, "apmsqueeze: scale of signs, mean or rms")
      ->capture_default_str();
  command
      .add_option("--dp-timeout", options.timeout,
                  "seconds to wait for another rank before giving up")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
}

std::unique_ptr<Communicator> connect(const ParallelOptions& options, TrainOptions& train) {
  if (options.method != "none" || train.parallel.method == ParallelMethod::kNone) {
    train.parallel = parse(options);
  }
  if (train.parallel.method == ParallelMethod::kNone) {
    check(launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, which would all train the same; choose how they work together: --dp allreduce, "
          "apmsqueeze or votes");
    return nullptr;
  }
  std::unique_ptr<Communicator> ranks = connect_ranks(options.timeout);
  train.ranks = ranks.get();
  if (train.micro_batches <= 1) train.micro_batches = ranks->size();
  check(train.micro_batches % ranks->size() == 0, "--micro-batches ", train.micro_batches, ": ",
        ranks->size(), " ranks cannot share them evenly; give a multiple of ", ranks->size(),
        ", or start a number of ranks that divides them");
  check(train.parallel.method != ParallelMethod::kVotes || train.micro_batches <= 127,
        "--micro-batches ", train.micro_batches, ": sums of votes have 8 bits, at most 127 parts");
  if (ranks->rank() > 0) {
    train.quiet = true;
    train.log.clear();
  }
  return ranks;
}

void check_same_job(const Dataset& dataset, const TrainOptions& options) {
  if (options.ranks == nullptr) return;
  Communicator& ranks = *options.ranks;
  const Recipe recipe = load_recipe(options.recipe, options.overrides);
  check_agreement(ranks, "version of tritgrad", TRITGRAD_VERSION);
  check_agreement(ranks, "data (--data)", data_xxh3(dataset));
  check_agreement(ranks, "recipe", recipe.toml);
  check_agreement(ranks, "model (--model)", options.model);
  check_agreement(ranks, "seed (--seed)", std::to_string(options.seed));
  check_agreement(
      ranks, "way to work together (--dp)",
      concat(method_name(options.parallel.method), options.parallel.majority,
             options.parallel.warmup.value_or(-1.0), static_cast<int>(options.parallel.squeeze)));
  check_agreement(
      ranks, "length or division of the run",
      concat(options.epochs, ' ', options.batch, ' ', options.micro_batches, ' ',
             options.validation, ' ', options.folds, ' ', options.augment, ' ', options.stop_after,
             ' ', options.save_every, ' ', options.save.empty(), ' ', options.resume.empty()));
}

Recipe joint_recipe(const ParallelSpec& spec, Recipe recipe) {
  if (spec.method == ParallelMethod::kNone) return recipe;
  const bool sums = spec.method == ParallelMethod::kAllreduce;
  check(sums || recipe.clip_grad_norm == 0.0, "recipe '", recipe.name,
        "': clip_grad_norm = ", recipe.clip_grad_norm,
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

std::unique_ptr<DataParallel> make_parallel(const TrainOptions& options, const Recipe& recipe,
                                            Model& model, Optimizer& optimizer) {
  if (options.ranks == nullptr) return nullptr;
  return std::make_unique<DataParallel>(*options.ranks, options.parallel, model.parameters(),
                                        optimizer, recipe.gradient_format);
}

Traffic traffic_of(const DataParallel& parallel, const TrainOptions& options, const Recipe& recipe,
                   const ParameterStore& store) {
  const DataParallel::Sent& sent = parallel.sent();
  std::vector<ParameterSpec> plan;
  for (const Parameter& parameter : store) plan.push_back(parameter.spec());
  const TrafficForecast forecast =
      forecast_traffic(plan, recipe.updates(), options.parallel, options.ranks->size(), sent.parts,
                       recipe.gradient_format);
  const bool warming_up =
      options.parallel.method == ParallelMethod::kApmsqueeze && parallel.frozen_at() == 0;
  Traffic traffic;
  traffic.method = method_name(options.parallel.method);
  traffic.ranks = options.ranks->size();
  traffic.micro_batches = options.micro_batches;
  traffic.bytes_per_step =
      static_cast<double>(sent.total) / static_cast<double>(std::max<std::int64_t>(1, sent.steps));
  traffic.last_step_bytes = sent.last;
  traffic.last_step_forecast =
      forecast.total() + (warming_up ? forecast.warmup - forecast.gradients : 0);
  traffic.error_feedback_bytes = forecast.state;
  traffic.last_step_bytes_per_parameter =
      static_cast<double>(sent.last) / static_cast<double>(store.parameter_count());
  traffic.warmup_steps = parallel.warmup_steps();
  return traffic;
}

}  // namespace tritgrad
