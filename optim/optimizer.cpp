#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/check.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "optim/largest_gradient.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kNormUnit = 32768;
constexpr std::int64_t kWatchedSteps = 256;  // of a run, at most

// Returns the root mean square to expect of what `initial` draws.
double initial_size(const Initial& initial) {
  const double amount = std::abs(static_cast<double>(initial.amount));
  return initial.kind == Initial::Kind::kUniform ? amount / std::sqrt(3.0) : amount;
}

double squared_norm(const Parameter& parameter) {
  return parallel_sum(parameter.shape().size(), kNormUnit,
                      [&](std::int64_t begin, std::int64_t end) {
                        std::array<float, kRuleChunk> scratch;
                        double sum = 0.0;
                        for (std::int64_t first = begin; first < end; first += kRuleChunk) {
                          const std::int64_t n = std::min(kRuleChunk, end - first);
                          sum += kernels().reductions.sum_of_squares(
                              parameter.read_gradient(first, n, scratch.data()), n);
                        }
                        return sum;
                      });
}

// Returns the largest magnitude of the gradient as the rule sees it, for rules that read it.
float largest_for(const TrainedParameter& trained, float gradient_scale) {
  if (!trained.rule->reads_largest()) return 0.0f;
  const float largest = gradient_scale * largest_gradient(*trained.parameter);
  const auto limit = static_cast<float>(trained.group.clip_value);
  return limit > 0.0f ? std::min(largest, limit) : largest;
}

[[noreturn]] void refuse_gradient(const Parameter& parameter, std::int64_t step) {
  throw Diverged(concat("step ", step, ": the gradient of '", parameter.name(),
                        "' is not finite; the parameter was not changed; lower the learning rate, "
                        "or set non_finite = \"skip\" to leave such updates out"));
}

bool step_is_watched(std::int64_t step, std::int64_t total_steps) {
  return step % std::max<std::int64_t>(1, (total_steps + kWatchedSteps - 1) / kWatchedSteps) == 0;
}

}  // namespace

Optimizer::Optimizer(ParameterStore& store, const GroupOf& group_of, std::int64_t total_steps,
                     std::uint64_t seed, NonFinite on_non_finite)
    : store_(&store), total_steps_(total_steps), seed_(seed), on_non_finite_(on_non_finite) {
  for (Parameter& parameter : store) {
    if (parameter.spec().trainable()) trained_.emplace_back(parameter, group_of(parameter.spec()));
  }
}

double Optimizer::lr_at(const TrainedParameter& trained, std::int64_t step) const {
  const double factor = trained.group.schedule.factor(step, total_steps_);
  const double size = initial_size(trained.parameter->spec().initial);
  const double unit = trained.group.lr_relative && size > 0.0 ? size : 1.0;
  return trained.group.lr * factor * unit;
}

double Optimizer::lr(const Parameter& parameter) const {
  return lr_at(find(parameter), steps_done_);
}

TrainedParameter& Optimizer::find(const Parameter& parameter) {
  return const_cast<TrainedParameter&>(std::as_const(*this).find(parameter));
}

const TrainedParameter& Optimizer::find(const Parameter& parameter) const {
  for (const TrainedParameter& trained : trained_) {
    if (trained.parameter == &parameter) return trained;
  }
  fail("Optimizer: parameter '", parameter.name(), "' is not one of this optimizer's");
}

void Optimizer::step(Parameter& parameter) {
  if (!parameter.spec().trainable() || !parameter.has_gradient()) return;
  if (parameter.gradient_is_finite()) return apply(find(parameter));
  if (on_non_finite_ == NonFinite::kRefuse) refuse_gradient(parameter, steps_done_ + 1);
  note_skip();
}

// Makes the update itself; the gradient is finite.
void Optimizer::apply(TrainedParameter& trained) {
  Parameter& parameter = *trained.parameter;
  const std::int64_t t =
      trained.updates.size() > 0 ? *trained.updates.as<std::int64_t>() + 1 : steps_done_ + 1;
  const double rate = lr_at(trained, steps_done_);
  const EcoStep eco =
      eco_step(trained.group.eco, *trained.rule, decoupled_decay(trained.group.rule), rate,
               lr_at(trained, steps_done_ + 1), t);
  if (eco.skip) return;
  const Descent descent(
      static_cast<float>(rate),
      RandomKey{seed_, parameter.stream(), static_cast<std::uint32_t>(steps_done_ + 1)});
  trained.rule->begin({t, descent.key, largest_for(trained, gradient_scale_)});
  const bool is_watched =
      rate > 0.0 && trained.watch.is_open() && step_is_watched(steps_done_, total_steps_);
  flips_ += ParameterUpdate(trained, descent, eco, gradient_scale_, is_watched).run();
  if (is_watched) trained.watch.after_update(parameter.storage(), rate);
  for (Storage& moment : trained.moments) moment.refresh();
  parameter.storage().refresh();
  if (trained.updates.size() > 0) *trained.updates.as<std::int64_t>() = t;
}

void Optimizer::freeze_variance(std::int64_t updates) {
  for (TrainedParameter& trained : trained_) {
    auto* rule = dynamic_cast<FreezesVariance*>(trained.rule.get());
    check(rule != nullptr, "freeze_variance: the rule has no second moment; use adamw");
    rule->freeze_variance(updates);
  }
}

void Optimizer::check_gradients() const {
  for (const TrainedParameter& trained : trained_) {
    if (trained.parameter->has_gradient() && !trained.parameter->gradient_is_finite()) {
      refuse_gradient(*trained.parameter, steps_done_ + 1);
    }
  }
}

void Optimizer::step() {
  if (skip_step_) return;
  if (on_non_finite_ == NonFinite::kSkip) {
    for (Parameter& parameter : *store_) step(parameter);
    return;
  }
  check_gradients();
  for (TrainedParameter& trained : trained_) {
    if (trained.parameter->has_gradient()) apply(trained);
  }
}

double Optimizer::clip_grad_norm(double max_norm) {
  check(max_norm > 0.0, "clip_grad_norm: max_norm = ", max_norm, " must be above 0");
  double squares = 0.0;
  for (const TrainedParameter& trained : trained_) {
    const Parameter& parameter = *trained.parameter;
    check(
        parameter.gradient_is_kept(), "clip_grad_norm: the gradient of '", parameter.name(),
        "' is released as soon as it is used; set gradients = \"kept\" to clip by the global norm");
    squares += squared_norm(parameter);
  }
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) {
    if (on_non_finite_ == NonFinite::kRefuse) check_gradients();
    skip_step_ = true;
    note_skip();
    return norm;
  }
  gradient_scale_ = norm > max_norm ? static_cast<float>(max_norm / norm) : 1.0f;
  return norm;
}

void Optimizer::note_skip() {
  if (!skips_) ++skipped_updates_;
  skips_ = true;
}

void Optimizer::skip_step() {
  note_skip();
  advance();
}

void Optimizer::advance() {
  ++steps_done_;
  gradient_scale_ = 1.0f;
  skip_step_ = false;
  skips_ = false;
  store_->zero_gradients();
}

FlipCounts Optimizer::take_flips() { return std::exchange(flips_, {}); }

std::int64_t Optimizer::state_bytes(const ParameterSpec& spec, const GroupSpec& group) {
  const std::unique_ptr<Rule> rule = make_rule(group.rule);
  std::int64_t bytes = 0;
  for (const MomentSpec& moment : rule->moments()) {
    for (const PlaneSpec& plane :
         Storage::plane_specs(group.format_of(moment), spec.shape, Category::kMoments)) {
      bytes += plane.bytes();
    }
  }
  for (const PlaneSpec& plane : rule->planes(spec.shape)) bytes += plane.bytes();
  const bool counts = has_memory(*rule, spec.shape);
  return bytes + (counts ? static_cast<std::int64_t>(sizeof(std::int64_t)) : 0);
}

std::vector<Movement> Optimizer::movements() const {
  std::vector<Movement> movements;
  for (const TrainedParameter& trained : trained_) {
    if (trained.parameter->spec().role != Role::kWeight) continue;
    const bool rests = trained.group.lr == 0.0;
    movements.push_back(rests ? Movement{trained.parameter, 0.0, 0.0}
                              : trained.watch.movement(*trained.parameter));
  }
  return movements;
}

void Optimizer::resume_at(std::int64_t steps, std::int64_t skipped_updates) {
  check(steps >= 0 && steps <= total_steps_, "Optimizer: ", steps, " steps done is outside 0..",
        total_steps_, ", the steps of this run");
  check(skipped_updates >= 0 && skipped_updates <= steps, "Optimizer: ", skipped_updates,
        " skipped updates in ", steps, " steps; the state is damaged");
  for (const TrainedParameter& trained : trained_) {
    if (trained.updates.size() == 0) continue;
    const std::int64_t updates = *trained.updates.as<std::int64_t>();
    check(updates >= 0 && updates <= steps, "Optimizer: parameter '", trained.parameter->name(),
          "' claims ", updates, " updates in ", steps, " steps; the state is damaged");
  }
  steps_done_ = steps;
  skipped_updates_ = skipped_updates;
}

std::vector<NamedArray> Optimizer::state() {
  std::vector<NamedArray> planes;
  for (TrainedParameter& trained : trained_) {
    const std::string prefix = trained.parameter->name() + "/";
    for (std::size_t i = 0; i < trained.moments.size(); ++i) {
      for (const Plane& plane : trained.moments[i].planes()) {
        planes.push_back({prefix + trained.moment_specs[i].name + "/" + plane.spec.name,
                          plane.spec.dtype,
                          {plane.spec.count},
                          plane.bytes,
                          plane.order});
      }
    }
    for (std::size_t i = 0; i < trained.planes.size(); ++i) {
      const PlaneSpec& spec = trained.plane_specs[i];
      planes.push_back({prefix + std::string(rule_name(trained.group.rule.kind)) + "/" + spec.name,
                        spec.dtype,
                        {spec.count},
                        trained.planes[i].bytes()});
    }
    if (trained.updates.size() > 0) {
      planes.push_back({prefix + "updates", Dtype::kI64, {1}, trained.updates.bytes()});
    }
  }
  return planes;
}

}  // namespace tritgrad
