#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "optim/rules/microadam.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kElementsPerUnit = 32768;
constexpr std::int64_t kMaxRun = Microadam::kRun;
constexpr std::int64_t kWatchEvery = 16;  // steps

// Expected root mean square of what `initial` draws.
double initial_size(const Initial& initial) {
  const double amount = std::abs(static_cast<double>(initial.amount));
  return initial.kind == Initial::Kind::kUniform ? amount / std::sqrt(3.0) : amount;
}

bool has_memory(const Rule& rule, const Shape& shape) {
  return !rule.moments().empty() || !rule.planes(shape).empty();
}

// Calls body(block, offset in the run) for the run's blocks.
template <typename Run, typename Body>
void for_each_block_of(const Run& run, Body&& body) {
  std::int64_t offset = 0;
  for (std::int64_t row = run.row_begin; row < run.row_end; ++row) {
    for (std::int64_t col = run.col_begin; col < run.col_end; col += kBlock) {
      const Block block{row, col, std::min(kBlock, run.col_end - col), run.slot};
      body(block, offset);
      offset += block.n;
    }
  }
}

template <typename Run>
void decode_masters(const Storage& storage, const Run& run, float* out) {
  for_each_block_of(run, [&](const Block& block, std::int64_t offset) {
    storage.decode_master(block, out + offset);
  });
}

// In double: of finite floats it is finite.
double squared_norm(const Parameter& parameter) {
  return parallel_sum(
      parameter.shape().size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
        std::array<float, kMaxRun> scratch;
        double sum = 0.0;
        for (std::int64_t first = begin; first < end; first += kMaxRun) {
          const std::int64_t n = std::min(kMaxRun, end - first);
          sum += kernels().sum_of_squares(parameter.read_gradient(first, n, scratch.data()), n);
        }
        return sum;
      });
}

// Share of the elements that an update of this size can move.
double movable_share(const Parameter& parameter, double update) {
  const Shape& shape = parameter.shape();
  const double movable = parallel_sum(shape.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for_each_block(begin, end, shape.cols(), [&](const Block& block) {
      std::array<float, kBlock> zone;
      parameter.storage().dead_zone(block, zone.data());
      count += std::count_if(zone.begin(), zone.begin() + block.n,
                             [&](float z) { return update > static_cast<double>(z); });
    });
    return static_cast<double>(count);
  });
  return movable / static_cast<double>(std::max<std::int64_t>(1, shape.size()));
}

float largest_magnitude(const float* x, std::int64_t n) {
  float largest = 0.0f;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

}  // namespace

// Neighbouring elements of a parameter, and the part of the pass that they belong to.
struct Optimizer::Run {
  std::int64_t row_begin, row_end, col_begin, col_end;
  std::int64_t slot;

  std::int64_t size() const { return (row_end - row_begin) * (col_end - col_begin); }
};

struct Optimizer::RunScratch {
  std::array<float, kMaxRun> grad, weight, direction, gain;
  std::array<std::array<float, kMaxRun>, kMaxMoments> moments;
};

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
    state.plane_specs = state.rule->planes(shape);
    std::vector<Plane> planes;
    for (const PlaneSpec& spec : state.plane_specs) {
      const Buffer& buffer =
          state.planes.emplace_back(static_cast<std::size_t>(spec.bytes()), Category::kMoments);
      planes.push_back({spec, buffer.bytes()});
    }
    state.rule->attach(shape, planes);
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

double Optimizer::lr(const Parameter& parameter) { return lr_at(find(parameter), steps_done_); }

Optimizer::State& Optimizer::find(const Parameter& parameter) {
  for (State& state : states_) {
    if (state.parameter == &parameter) return state;
  }
  fail("Optimizer: parameter '", parameter.name(), "' is not one of this optimizer's");
}

const float* Optimizer::read_gradient(const State& state, std::int64_t first, std::int64_t n,
                                      float* scratch) const {
  const float* grad = state.parameter->read_gradient(first, n, scratch);
  const float limit = static_cast<float>(state.group.clip_value);
  if (gradient_scale_ == 1.0f && limit == 0.0f) return grad;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient_scale_ * grad[i];
    scratch[i] = limit > 0.0f ? std::clamp(g, -limit, limit) : g;
  }
  return scratch;
}

void Optimizer::step(Parameter& parameter) {
  if (!parameter.spec().trainable() || !parameter.has_gradient()) return;
  State& state = find(parameter);
  if (!std::isfinite(squared_norm(parameter))) {
    check(on_non_finite_ == NonFinite::kSkip, "step ", steps_done_ + 1, ": the gradient of '",
          parameter.name(),
          "' is not finite; the parameter was not changed; lower the learning "
          "rate, or set non_finite = \"skip\" to leave such updates out");
    ++skipped_updates_;
    return;
  }
  const std::int64_t t =
      state.updates.size() > 0 ? *state.updates.as<std::int64_t>() + 1 : steps_done_ + 1;
  const double rate = lr_at(state, steps_done_);
  const Update update{{static_cast<float>(rate),
                       {seed_, parameter.stream(), static_cast<std::uint32_t>(steps_done_ + 1)}},
                      eco_step(state.group.eco, *state.rule, decoupled_decay(state.group.rule),
                               rate, lr_at(state, steps_done_ + 1), t),
                      steps_done_ % kWatchEvery == 0};
  if (update.eco.skip) return;
  state.rule->begin({t, update.descent.key});

  // Units depend on the shape alone, and their results are joined in order.
  const std::int64_t rows = parameter.shape().rows();
  const std::int64_t cols = std::max<std::int64_t>(1, parameter.shape().cols());
  const std::int64_t wanted =
      std::max({std::int64_t{1}, kElementsPerUnit / cols, (rows + kSlots - 1) / kSlots});
  const std::int64_t together = state.runs.rows_per_run();
  const std::int64_t rows_per_unit = (wanted + together - 1) / together * together;
  std::array<UnitResult, kSlots> results{};
  parallel_ranges(rows, rows_per_unit, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t slot = begin / rows_per_unit;
    RunScratch scratch;
    state.runs.for_each(begin, end,
                        [&](std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
                            std::int64_t col_end) {
                          step_run(state, update, {row_begin, row_end, col_begin, col_end, slot},
                                   scratch, results[static_cast<std::size_t>(slot)]);
                        });
  });
  float peak = 0.0f;
  for (const UnitResult& result : results) {
    flips_ += result.flips;
    peak = std::max(peak, result.peak);
  }
  if (update.watch) {
    state.reach = std::max(state.reach.value_or(0.0), rate * static_cast<double>(peak));
  }
  for (Storage& moment : state.moments) moment.refresh();
  parameter.storage().refresh();
  if (state.updates.size() > 0) *state.updates.as<std::int64_t>() = t;
}

// Moments of a parameter share its shape, so a block of one is a block of the other.
void Optimizer::step_run(State& state, const Update& update, const Run& run, RunScratch& scratch,
                         UnitResult& result) {
  Storage& storage = state.parameter->storage();
  const std::int64_t first = run.row_begin * storage.shape().cols() + run.col_begin;
  RuleBlock block{first,  run.size(), nullptr, scratch.weight.data(), {}, scratch.direction.data(),
                  nullptr};
  block.grad = read_gradient(state, first, block.n, scratch.grad.data());
  const bool eco = state.group.eco != EcoForm::kOff;
  if (eco) block.gain = scratch.gain.data();
  const Rule::WeightReading reading = state.rule->weight_reading();
  if (reading == Rule::WeightReading::kMaster || eco) {
    decode_masters(storage, run, scratch.weight.data());
  } else if (reading == Rule::WeightReading::kValue) {
    for_each_block_of(run, [&](const Block& b, std::int64_t offset) {
      storage.decode_value(b, scratch.weight.data() + offset);
    });
  }
  for (std::size_t i = 0; i < state.moments.size(); ++i) {
    float* stored = state.moments[i].fp32_data();
    if (stored == nullptr) decode_masters(state.moments[i], run, scratch.moments[i].data());
    block.moments[i] = stored == nullptr ? scratch.moments[i].data() : stored + first;
  }

  state.rule->direct(block);

  if (update.watch)
    result.peak = std::max(result.peak, largest_magnitude(block.direction, block.n));
  for_each_block_of(run, [&](const Block& b, std::int64_t offset) {
    result.flips += eco ? descend_with_eco(storage, update, b, scratch.weight.data() + offset,
                                           block.direction + offset, block.gain + offset,
                                           block.moments[0] + offset)
                        : storage.descend(b, block.direction + offset, update.descent);
  });
  for (std::size_t i = 0; i < state.moments.size(); ++i) {
    Storage& moment = state.moments[i];
    if (moment.fp32_data() != nullptr) continue;
    // Every plane has noise of its own: shared noise would correlate its rounding errors.
    RandomKey key = update.descent.key;
    key.stream += static_cast<std::uint32_t>(i + 1) * 0x9E3779B9u;
    for_each_block_of(run, [&](const Block& b, std::int64_t offset) {
      moment.encode(b, scratch.moments[i].data() + offset, key);
    });
  }
}

// `weight` is the master before the step; it becomes the one after it.
FlipCounts Optimizer::descend_with_eco(Storage& storage, const Update& update, const Block& block,
                                       float* weight, const float* direction, const float* gain,
                                       float* momentum) {
  const bool ternary = storage.spec().is_ternary();
  std::array<float, kBlock> wanted, after;
  std::copy_n(weight, block.n, wanted.data());
  kernels().descend(wanted.data(), direction, update.descent.lr, block.n);
  if (ternary) {
    for (float& w : std::span(wanted).first(static_cast<std::size_t>(block.n))) {
      w = std::clamp(w, -1.5f, 1.5f);
    }
  }
  storage.encode(block, wanted.data(), update.descent.key);
  storage.decode_master(block, after.data());
  FlipCounts flips;
  for (std::int64_t i = 0; i < block.n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float error = wanted[at] - after[at];
    momentum[i] = update.eco.rescale * (momentum[i] + update.eco.alpha * error / gain[i]);
    flips.flips += ternary && weight[i] != after[at];
  }
  return flips;
}

void Optimizer::step() {
  for (Parameter& parameter : *store_) step(parameter);
}

double Optimizer::clip_grad_norm(double max_norm) {
  double squares = 0.0;
  for (const State& state : states_) {
    const Parameter& parameter = *state.parameter;
    check(
        parameter.gradient_is_kept(), "clip_grad_norm: the gradient of '", parameter.name(),
        "' is released as soon as it is used; set gradients = \"kept\" to clip by the global norm");
    squares += squared_norm(parameter);
  }
  const double norm = std::sqrt(squares);
  gradient_scale_ = norm > max_norm ? static_cast<float>(max_norm / norm) : 1.0f;
  return norm;
}

void Optimizer::advance() {
  ++steps_done_;
  gradient_scale_ = 1.0f;
  store_->zero_gradients();
}

FlipCounts Optimizer::take_flips() { return std::exchange(flips_, {}); }

std::vector<Reach> Optimizer::take_reach() {
  std::vector<Reach> reaches;
  for (State& state : states_) {
    if (!state.reach) continue;
    const double update = *std::exchange(state.reach, std::nullopt);
    reaches.push_back({state.parameter, update, movable_share(*state.parameter, update)});
  }
  return reaches;
}

std::vector<StatePlane> Optimizer::state() {
  std::vector<StatePlane> planes;
  for (State& state : states_) {
    const std::string prefix = state.parameter->name() + "/";
    for (std::size_t i = 0; i < state.moments.size(); ++i) {
      for (const Plane& plane : state.moments[i].planes()) {
        planes.push_back({prefix + state.moment_specs[i].name + "/" + plane.spec.name,
                          plane.spec.dtype, plane.bytes});
      }
    }
    for (std::size_t i = 0; i < state.planes.size(); ++i) {
      const PlaneSpec& spec = state.plane_specs[i];
      planes.push_back({prefix + std::string(rule_name(state.group.rule.kind)) + "/" + spec.name,
                        spec.dtype, state.planes[i].bytes()});
    }
    if (state.updates.size() > 0) {
      planes.push_back({prefix + "updates", Dtype::kI64, state.updates.bytes()});
    }
  }
  return planes;
}

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
