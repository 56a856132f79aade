// Moves parameters: gradient -> rule -> direction -> storage.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/parameter.h"
#include "optim/rule.h"
#include "optim/schedule.h"

namespace tritgrad {

// How one group of parameters is trained.
struct GroupSpec {
  RuleSpec rule;
  double lr = 1e-3;  // per unit of the master: trits for bare-trit formats
  // lr counts relative to the size that the parameter began with: scales of wide and narrow layers
  // then move at the same relative rate.
  bool lr_relative = false;
  Schedule schedule;
  FormatSpec moments;  // where moments are stored
};

// A named piece of optimizer state, as it lies in memory.
struct StatePlane {
  std::string name;  // "PARAMETER/m/value"
  Dtype dtype;
  std::span<std::byte> bytes;
};

class Optimizer {
 public:
  // Chooses the group of a parameter; called once for each trainable parameter.
  using GroupOf = std::function<GroupSpec(const ParameterSpec&)>;

  // `total_steps` is what schedules refer to; `seed` keys stochastic rounding.
  Optimizer(ParameterStore& store, const GroupOf& group_of, std::int64_t total_steps,
            std::uint64_t seed);

  // The atom: updates one parameter from its gradient. Frozen parameters and those without a
  // gradient are left alone. May be called as soon as the gradient is complete (Tape::backward,
  // on_ready).
  void step(Parameter& parameter);
  // step() for all parameters in order.
  void step();
  // Scales all kept gradients so that their joint 2-norm is at most max_norm; returns the norm
  // before. Throws Error if a gradient is not kept: a released gradient is gone when the norm is
  // known.
  double clip_grad_norm(double max_norm);
  // Ends the step: schedules advance, kept gradients are zeroed.
  void advance();

  std::int64_t steps_done() const { return steps_done_; }
  void set_steps_done(std::int64_t steps) { steps_done_ = steps; }
  std::int64_t total_steps() const { return total_steps_; }
  // The learning rate that `parameter` would be updated with now.
  double lr(const Parameter& parameter);
  // Trits that changed since the last call.
  FlipCounts take_flips();

  // Moments and scalars, in a fixed order; writing to the bytes restores them.
  std::vector<StatePlane> state();
  // Bytes of moments and scalars that `spec` would need under `group`; allocates nothing.
  static std::int64_t state_bytes(const ParameterSpec& spec, const GroupSpec& group);

 private:
  struct State {
    Parameter* parameter;
    GroupSpec group;
    double initial_size;  // root mean square of the master at the start
    std::unique_ptr<Rule> rule;
    std::vector<Storage> moments;
    Buffer scalar_bytes;

    std::span<float> scalars() const {
      return {scalar_bytes.as<float>(), scalar_bytes.size() / sizeof(float)};
    }
  };
  struct RowsResult {
    FlipCounts flips;
    double sum;
  };

  double lr(const State& state) const;
  State& find(const Parameter& parameter);
  RowsResult step_rows(State& state, const Descent& descent, std::int64_t begin, std::int64_t end);

  std::deque<State> states_;
  ParameterStore* store_;
  std::int64_t total_steps_;
  std::uint64_t seed_;
  std::int64_t steps_done_ = 0;
  FlipCounts flips_;
};

}  // namespace tritgrad
