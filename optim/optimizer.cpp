#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/check.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "optim/finite_gradient.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kElementsPerUnit = 32768;
constexpr std::int64_t kWatchedSteps = 256;  // of a run, at most

// Expected root mean square of what `initial` draws.
double initial_size(const Initial& initial) {
  const double amount = std::abs(static_cast<double>(initial.amount));
  return initial.kind == Initial::Kind::kUniform ? amount / std::sqrt(3.0) : amount;
}

// Rows of a unit of an update. Units depend on the shape alone, never on the threads, and their
// results are joined in order.
std::int64_t unit_rows(const Shape& shape, const Runs& runs) {
  const std::int64_t cols = std::max<std::int64_t>(1, shape.cols());
  const std::int64_t wanted =
      std::max({std::int64_t{1}, kElementsPerUnit / cols, (shape.rows() + kSlots - 1) / kSlots});
  const std::int64_t together = std::lcm(LazyGradient::kRows, runs.rows_per_run());
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a run has one row at least
  return (wanted + together - 1) / together * together;
}

bool has_memory(const Rule& rule, const Shape& shape) {
  return !rule.moments().empty() || !rule.planes(shape).empty();
}

double squared_norm(const Parameter& parameter) {
  return parallel_sum(parameter.shape().size(), kElementsPerUnit,
                      [&](std::int64_t begin, std::int64_t end) {
                        std::array<float, kRun> scratch;
                        double sum = 0.0;
                        for (std::int64_t first = begin; first < end; first += kRun) {
                          const std::int64_t n = std::min(kRun, end - first);
                          sum += kernels().reductions.sum_of_squares(
                              parameter.read_gradient(first, n, scratch.data()), n);
                        }
                        return sum;
                      });
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
    if (!parameter.spec().trainable()) continue;
    const Shape& shape = parameter.shape();
    State& state = states_.emplace_back();
    state.parameter = &parameter;
    state.group = group_of(parameter.spec());
    const GroupSpec& group = state.group;
    if (group.eco != EcoForm::kOff) check_eco(group.rule, parameter.spec().format);
    state.initial_size = initial_size(parameter.spec().initial);
    state.rule = make_rule(group.rule);
    state.runs = Runs(shape, state.rule->run_limit());
    state.moment_specs = state.rule->moments();
    for (const MomentSpec& moment : state.moment_specs) {
      state.moments.emplace_back(group.format_of(moment), shape, Category::kMoments);
    }
    if (group.eco == EcoForm::kOff) {
      state.flash = FlashPlanes::of(parameter.storage(), state.moments);
    }
    state.plane_specs = state.rule->planes(shape);
    std::vector<Plane> planes;
    for (const PlaneSpec& spec : state.plane_specs) {
      const Buffer& buffer =
          state.planes.emplace_back(static_cast<std::size_t>(spec.bytes()), Category::kMoments);
      planes.push_back({spec, buffer.bytes()});
    }
    state.rule->attach(shape, planes);
    const bool in_numbers =
        std::all_of(state.moments.begin(), state.moments.end(),
                    [](const Storage& m) { return m.spec().kind == FormatKind::kScalar; });
    state.form = state.rule->gradient_form().direction;
    // Formats that do not hold bare trits want numbers: signs written for a run at once cost less
    // than for each of its blocks.
    const bool reads_signs = parameter.spec().format.traits().holds_trits;
    if (!in_numbers || (state.form == Rule::DirectionForm::kSigns && !reads_signs)) {
      state.form = Rule::DirectionForm::kWritten;
    }
    if (group.lr > 0.0 && parameter.spec().role == Role::kWeight) {
      state.watch = StalledUpdates(parameter.spec(), group.eco);
    }
    if (has_memory(*state.rule, shape)) {
      state.updates = Buffer(sizeof(std::int64_t), Category::kMoments);
    }
  }
}

double Optimizer::lr_at(const State& state, std::int64_t step) const {
  const double factor = state.group.schedule.factor(step, total_steps_);
  const double unit =
      state.group.lr_relative && state.initial_size > 0.0 ? state.initial_size : 1.0;
  return state.group.lr * factor * unit;
}

double Optimizer::lr(const Parameter& parameter) const {
  return lr_at(find(parameter), steps_done_);
}

Optimizer::State& Optimizer::find(const Parameter& parameter) {
  return const_cast<State&>(std::as_const(*this).find(parameter));
}

const Optimizer::State& Optimizer::find(const Parameter& parameter) const {
  for (const State& state : states_) {
    if (state.parameter == &parameter) return state;
  }
  fail("Optimizer: parameter '", parameter.name(), "' is not one of this optimizer's");
}

void Optimizer::step(Parameter& parameter) {
  if (!parameter.spec().trainable() || !parameter.has_gradient()) return;
  if (gradient_is_finite(parameter)) return apply(find(parameter));
  if (on_non_finite_ == NonFinite::kRefuse) refuse_gradient(parameter, steps_done_ + 1);
  note_skip();
}

// The update itself; the gradient is finite.
void Optimizer::apply(State& state) {
  Parameter& parameter = *state.parameter;
  const std::int64_t t =
      state.updates.size() > 0 ? *state.updates.as<std::int64_t>() + 1 : steps_done_ + 1;
  const double rate = lr_at(state, steps_done_);
  const Update update{
      {static_cast<float>(rate),
       {seed_, parameter.stream(), static_cast<std::uint32_t>(steps_done_ + 1)}},
      eco_step(state.group.eco, *state.rule, decoupled_decay(state.group.rule), rate,
               lr_at(state, steps_done_ + 1), t),
      rate > 0.0 && state.watch.is_open() && step_is_watched(steps_done_, total_steps_)};
  if (update.eco.skip) return;
  state.rule->begin({t, update.descent.key});

  const std::int64_t rows_per_unit = unit_rows(parameter.shape(), state.runs);
  const bool in_tiles = parameter.gradient_source != nullptr && state.rule->run_limit() == kRun;
  const bool is_written = state.form == Rule::DirectionForm::kWritten;
  std::array<FlipCounts, kSlots> results{};
  const std::int64_t rows = parameter.shape().rows();
  parallel_ranges(rows, rows_per_unit, [&](std::int64_t begin, std::int64_t end) {
    const Unit unit{begin, end, begin / rows_per_unit};
    FlipCounts& flips = results[static_cast<std::size_t>(unit.slot)];
    !is_written ? step_unwritten(state, update, unit, flips)
    : in_tiles  ? step_tiles(state, update, unit, flips)
                : step_rows(state, update, unit, flips);
  });
  for (const FlipCounts& flips : results) flips_ += flips;
  if (update.watch) state.watch.after_update(parameter.storage(), rate);
  for (Storage& moment : state.moments) moment.refresh();
  parameter.storage().refresh();
  if (state.updates.size() > 0) *state.updates.as<std::int64_t>() = t;
}

void Optimizer::freeze_variance(std::int64_t updates) {
  for (State& state : states_) {
    auto* rule = dynamic_cast<FreezesVariance*>(state.rule.get());
    check(rule != nullptr, "freeze_variance: the rule has no second moment; use adamw");
    rule->freeze_variance(updates);
  }
}

void Optimizer::check_gradients() const {
  for (const State& state : states_) {
    if (state.parameter->has_gradient() && !gradient_is_finite(*state.parameter)) {
      refuse_gradient(*state.parameter, steps_done_ + 1);
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
  for (State& state : states_) {
    if (state.parameter->has_gradient()) apply(state);
  }
}

double Optimizer::clip_grad_norm(double max_norm) {
  check(max_norm > 0.0, "clip_grad_norm: max_norm = ", max_norm, " must be above 0");
  double squares = 0.0;
  for (const State& state : states_) {
    const Parameter& parameter = *state.parameter;
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

}  // namespace tritgrad
