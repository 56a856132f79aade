#include "tools/parallel_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/check.h"
#include "engine/parse_number.h"
#include "models/recipes/recipe.h"
#include "optim/parallel/forecast.h"
#include "tools/cli/complain.h"
#include "tools/training_state.h"

namespace tritgrad {
namespace {

constexpr double kTimeout = 60.0;

std::optional<double> parse_warmup(const std::string& text) {
  if (text.empty()) return ParallelSpec{}.warmup;
  if (text == "auto") return std::nullopt;
  const std::optional<double> share = parse_number(text);
  check(share && *share > 0.0 && *share <= 1.0, "--dp-warmup: '", text,
        "' is no share of the steps; give a number above 0, at most 1, or auto");
  return share;
}

Compression parse_scale(const std::string& text) {
  check(text.empty() || text == "mean" || text == "rms", "--dp-scale: '", text,
        "', expected mean or rms");
  return text == "rms" ? Compression::kSignRms : Compression::kSign;
}

double parse_timeout(const std::string& text) {
  constexpr double kMost = 1e6;
  if (text.empty()) return kTimeout;
  const std::optional<double> seconds = parse_number(text);
  check(seconds && *seconds >= 1.0 && *seconds <= kMost, "--dp-timeout: '", text,
        "' is no time to wait; give seconds, 1 to ", kMost);
  return *seconds;
}

ParallelSpec parse(const ParallelOptions& options, ParallelMethod method) {
  ParallelSpec spec;
  spec.method = method;
  spec.majority = options.majority;
  spec.warmup = parse_warmup(options.warmup);
  spec.squeeze = parse_scale(options.scale);
  check(!spec.majority || method == ParallelMethod::kVotes,
        "--dp-majority is a way to count votes; it needs --dp votes");
  const bool squeezes = method == ParallelMethod::kApmsqueeze;
  check(options.warmup.empty() || squeezes,
        "--dp-warmup: only apmsqueeze has a warm-up; leave the option "
        "out or use --dp apmsqueeze");
  check(options.scale.empty() || squeezes,
        "--dp-scale: only apmsqueeze scales signs; leave the option "
        "out or use --dp apmsqueeze");
  return spec;
}

ParallelSpec parse(const ParallelOptions& options) {
  return parse(options,
               options.method.empty() ? ParallelMethod::kNone : parse_method(options.method));
}

std::string warmup_text(const ParallelSpec& spec) {
  return spec.warmup ? concat(*spec.warmup) : "auto";
}

std::string scale_text(const ParallelSpec& spec) {
  return spec.squeeze == Compression::kSign ? "mean" : "rms";
}

// What was given must be what the checkpoint has.
void check_resumed(const ParallelOptions& options, const TrainOptions& train) {
  const ParallelSpec& saved = train.parallel;
  const auto keep = [&](const char* name, bool is_given, std::string_view given,
                        std::string_view kept) {
    check(!is_given || given == kept, name, ": '", given, "' contradicts the checkpoint '",
          train.resume, "', which has '", kept, "'; leave the option out");
  };
  if (!options.method.empty()) {
    keep("--dp", true, method_name(parse_method(options.method)), method_name(saved.method));
  }
  const ParallelSpec spec = parse(options, saved.method);
  keep("--dp-majority", options.majority, "true", saved.majority ? "true" : "false");
  keep("--dp-warmup", !options.warmup.empty(), warmup_text(spec), warmup_text(saved));
  keep("--dp-scale", !options.scale.empty(), scale_text(spec), scale_text(saved));
}

void end_process(const std::string& sentence) {
  std::fflush(stdout);
  std::_Exit(complain(sentence));
}

std::vector<ParameterSpec> plan_of(const ParameterStore& store) {
  std::vector<ParameterSpec> plan;
  for (const Parameter& parameter : store) plan.push_back(parameter.spec());
  return plan;
}

}  // namespace

void add_parallel_options(CLI::App& command, ParallelOptions& options) {
  command.add_option("--dp", options.method,
                     "train on all processes that mpirun started: allreduce (gradients), votes "
                     "(sign votes as integers), apmsqueeze (Adam's momentum in 1 bit) [none]");
  command.add_flag("--dp-majority", options.majority,
                   "votes: move by the majority rather than by the mean vote");
  command.add_option("--dp-warmup", options.warmup,
                     "apmsqueeze: share of the steps in full precision, or auto: until the second "
                     "moment is stable [0.2]");
  command.add_option("--dp-scale", options.scale, "apmsqueeze: scale of signs, mean or rms [mean]");
  command.add_option("--dp-timeout", options.timeout,
                     "seconds to wait for another rank before giving up [60]");
}

std::unique_ptr<Communicator> connect(const ParallelOptions& options, bool parts_are_given,
                                      TrainOptions& train) {
  const double timeout = parse_timeout(options.timeout);
  const bool resumed = !train.resume.empty();
  if (resumed) {
    check_resumed(options, train);
  } else {
    train.parallel = parse(options);
  }
  if (train.parallel.method == ParallelMethod::kNone) {
    check(!resumed || launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, but the checkpoint '", train.resume,
          "' is of a run without --dp; resume it without mpirun");
    check(launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, which would all train the same; choose how they work together: --dp allreduce, "
          "apmsqueeze or votes");
    check(options.timeout.empty(),
          "--dp-timeout: without --dp there are no other ranks to wait "
          "for; leave the option out or name a method by --dp");
    return nullptr;
  }
  std::unique_ptr<Communicator> ranks = connect_ranks(timeout, end_process);
  train.ranks = ranks.get();
  if (!parts_are_given && !resumed) train.micro_batches = ranks->size();
  // A resumed run keeps its parts, though some ranks may have none then.
  check(resumed || train.micro_batches >= ranks->size(), "--micro-batches ", train.micro_batches,
        ": ", ranks->size(), " ranks need a part each; give ", ranks->size(),
        " or more, or start fewer ranks");
  if (ranks->rank() > 0) {
    train.quiet = true;
    train.log.clear();
  }
  return ranks;
}

void check_same_job(const Dataset& dataset, const TrainOptions& options, const Recipe& recipe) {
  if (options.ranks == nullptr) return;
  const auto agree = [&](std::string_view what, const auto& value) {
    check_agreement(*options.ranks, what, concat(value));
  };
  const auto use = [](const std::string& path) { return path.empty() ? "no" : "yes"; };
  agree("version of tritgrad", TRITGRAD_VERSION);
  agree("data (--data)", data_xxh3(dataset));
  agree("recipe (--recipe, --set)", recipe.toml);
  agree("model (--model)", options.model);
  agree("seed (--seed)", options.seed);
  agree("way to work together (--dp)", method_name(options.parallel.method));
  agree("way to count votes (--dp-majority)", options.parallel.majority);
  agree("warm-up (--dp-warmup)", warmup_text(options.parallel));
  agree("scale of signs (--dp-scale)", scale_text(options.parallel));
  agree("length (--epochs)", options.epochs);
  agree("batch (--batch)", options.batch);
  agree("number of parts (--micro-batches)", options.micro_batches);
  agree("share of rows to watch (--val)", options.validation);
  agree("number of folds (--folds)", options.folds);
  agree("augmentation (--augment)", options.augment);
  agree("label smoothing (--label-smoothing)", options.label_smoothing.value_or(0.0));
  agree("scale of pixels (--pixels)", to_text(options.pixel_scale()));
  agree("last step (--stop-after)", options.stop_after);
  agree("time between checkpoints (--save-every)", options.save_every);
  agree("choice whether to save (--save)", use(options.save));
  agree("choice whether to resume (--resume)", use(options.resume));
}

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
