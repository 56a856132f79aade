#include "optim/optimizer.h"

#include <array>
#include <cmath>

#include "engine/kernel_table.h"
#include "engine/parallel.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kElementsPerUnit = 32768;
constexpr std::int64_t kMaxUnits = 256;

// Expected root mean square of what `initial` draws.
double initial_size(const Initial& initial) {
  const double amount = std::abs(static_cast<double>(initial.amount));
  return initial.kind == Initial::Kind::kUniform ? amount / std::sqrt(3.0) : amount;
}

std::size_t scalar_bytes(const Rule& rule) {
  return static_cast<std::size_t>(rule.scalar_count()) * sizeof(float);
}

}  // namespace

Optimizer::Optimizer(ParameterStore& store, const GroupOf& group_of, std::int64_t total_steps,
                     std::uint64_t seed)
    : store_(&store), total_steps_(total_steps), seed_(seed) {
  for (Parameter& parameter : store) {
    if (!parameter.spec().trainable()) continue;
    const GroupSpec group = group_of(parameter.spec());
    State& state = states_.emplace_back(State{
        &parameter, group, initial_size(parameter.spec().initial), make_rule(group.rule), {}, {}});
    for (std::size_t i = 0; i < state.rule->moment_names().size(); ++i) {
      state.moments.emplace_back(group.moments, parameter.shape(), Category::kMoments);
    }
    state.scalar_bytes = Buffer(scalar_bytes(*state.rule), Category::kMoments);
  }
}

double Optimizer::lr(const State& state) const {
  const double factor = state.group.schedule.factor(steps_done_, total_steps_);
  const double unit =
      state.group.lr_relative && state.initial_size > 0.0 ? state.initial_size : 1.0;
  return state.group.lr * factor * unit;
}

double Optimizer::lr(const Parameter& parameter) { return lr(find(parameter)); }

Optimizer::State& Optimizer::find(const Parameter& parameter) {
  for (State& state : states_) {
    if (state.parameter == &parameter) return state;
  }
  fail("Optimizer: parameter '", parameter.name(), "' is not one of this optimizer's");
}

void Optimizer::step(Parameter& parameter) {
  if (!parameter.spec().trainable() || !parameter.grad) return;
  State& state = find(parameter);
  const Descent descent{static_cast<float>(lr(state)),
                        {seed_, parameter.stream(), static_cast<std::uint32_t>(steps_done_ + 1)}};

  // Units depend on the shape alone, and their results are joined in order.
  const std::int64_t rows = parameter.shape().rows();
  const std::int64_t cols = std::max<std::int64_t>(1, parameter.shape().cols());
  const std::int64_t rows_per_unit =
      std::max({std::int64_t{1}, kElementsPerUnit / cols, (rows + kMaxUnits - 1) / kMaxUnits});
  std::array<RowsResult, kMaxUnits> results{};

  state.rule->begin(steps_done_ + 1, state.scalars());
  parallel_ranges(rows, rows_per_unit, [&](std::int64_t begin, std::int64_t end) {
    results[static_cast<std::size_t>(begin / rows_per_unit)] =
        step_rows(state, descent, begin, end);
  });
  double sum = 0.0;
  for (const RowsResult& result : results) {
    sum += result.sum;
    flips_ += result.flips;
  }
  state.rule->end(sum, parameter.shape().size(), state.scalars());
  parameter.storage().refresh();
}

Optimizer::RowsResult Optimizer::step_rows(State& state, const Descent& descent, std::int64_t begin,
                                           std::int64_t end) {
  Storage& storage = state.parameter->storage();
  const Tensor& grad = state.parameter->grad;
  const Rule::WeightReading reading = state.rule->weight_reading();
  RowsResult result{};
  std::array<float, kBlock> weight;
  std::array<float, kBlock> direction;
  for_each_block(begin, end, storage.shape().cols(), [&](const Block& block) {
    if (reading == Rule::WeightReading::kMaster) storage.decode_master(block, weight.data());
    if (reading == Rule::WeightReading::kValue) storage.decode_value(block, weight.data());
    RuleBlock rule_block{
        block.n, grad.row(block.row) + block.col, weight.data(), {}, direction.data()};
    // Moments share the shape of the weight, so a block of one is a block of the other.
    std::array<std::array<float, kBlock>, kMaxMoments> decoded;
    for (std::size_t i = 0; i < state.moments.size(); ++i) {
      const Storage& moment = state.moments[i];
      float* stored = moment.fp32_data();
      if (stored == nullptr) moment.decode_master(block, decoded[i].data());
      rule_block.moments[i] =
          stored == nullptr ? decoded[i].data() : stored + block.row * grad.cols() + block.col;
    }
    result.sum += state.rule->direct(rule_block);
    for (std::size_t i = 0; i < state.moments.size(); ++i) {
      Storage& moment = state.moments[i];
      if (rule_block.moments[i] == decoded[i].data()) {
        // Every plane has noise of its own: shared noise would correlate its rounding errors.
        RandomKey key = descent.key;
        key.stream += static_cast<std::uint32_t>(i + 1) * 0x9E3779B9u;
        moment.encode(block, decoded[i].data(), key);
      }
    }
    result.flips += storage.descend(block, direction.data(), descent);
  });
  return result;
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
    squares += parallel_sum(
        parameter.grad.size(), kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
          return kernels().sum_of_squares(parameter.grad.data + begin, end - begin);
        });
  }
  const double norm = std::sqrt(squares);
  if (!(norm > max_norm)) return norm;
  const float scale = static_cast<float>(max_norm / norm);
  for (const State& state : states_) {
    for (float& g : state.parameter->grad.values()) g *= scale;
  }
  return norm;
}

void Optimizer::advance() {
  ++steps_done_;
  store_->zero_gradients();
}

FlipCounts Optimizer::take_flips() { return std::exchange(flips_, {}); }

std::vector<StatePlane> Optimizer::state() {
  std::vector<StatePlane> planes;
  for (State& state : states_) {
    const std::string prefix = state.parameter->name() + "/";
    const std::vector<std::string> names = state.rule->moment_names();
    for (std::size_t i = 0; i < state.moments.size(); ++i) {
      for (const Plane& plane : state.moments[i].planes()) {
        planes.push_back(
            {prefix + names[i] + "/" + plane.spec.name, plane.spec.dtype, plane.bytes});
      }
    }
    if (state.scalar_bytes.size() > 0) {
      planes.push_back({prefix + "scalars", Dtype::kF32, state.scalar_bytes.bytes()});
    }
  }
  return planes;
}

std::int64_t Optimizer::state_bytes(const ParameterSpec& spec, const GroupSpec& group) {
  const std::unique_ptr<Rule> rule = make_rule(group.rule);
  std::int64_t bytes = 0;
  for (const PlaneSpec& plane :
       Storage::plane_specs(group.moments, spec.shape, Category::kMoments)) {
    bytes += plane.bytes() * static_cast<std::int64_t>(rule->moment_names().size());
  }
  return bytes + static_cast<std::int64_t>(scalar_bytes(*rule));
}

}  // namespace tritgrad
