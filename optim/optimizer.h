// Moves parameters: gradient -> rule -> direction -> storage.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/parameter.h"
#include "optim/eco.h"
#include "optim/rule.h"
#include "optim/runs.h"
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
  FormatSpec m, v;  // formats of signed moments and of second moments
  EcoForm eco = EcoForm::kOff;
  double clip_value = 0.0;  // gradient elements are clamped to +-clip_value; 0 = off

  const FormatSpec& format_of(const MomentSpec& moment) const { return moment.nonnegative ? v : m; }
};

// What happens to a parameter whose gradient is not finite. Its weights and state stay as they are.
enum class NonFinite {
  kRefuse,  // Error that names the parameter
  kSkip,    // the update is left out and counted
};

// A named piece of optimizer state, as it lies in memory.
struct StatePlane {
  std::string name;  // "PARAMETER/m/value"
  Dtype dtype;
  std::span<std::byte> bytes;
};

// How far the updates of a parameter reach on its grid. Residuals in the weight and chance carry
// every update; rounding to nearest alone loses what is below half a step.
struct Reach {
  const Parameter* parameter;
  double update;   // the largest |lr * direction| in every 16th step since the last report
  double movable;  // share of elements that an update of this size can move
};

class Optimizer {
 public:
  // Chooses the group of a parameter; called once for each trainable parameter.
  using GroupOf = std::function<GroupSpec(const ParameterSpec&)>;

  // `total_steps` is what schedules refer to; `seed` keys stochastic rounding. Throws Error for a
  // group that contradicts itself.
  Optimizer(ParameterStore& store, const GroupOf& group_of, std::int64_t total_steps,
            std::uint64_t seed, NonFinite on_non_finite = NonFinite::kRefuse);

  // The atom: updates one parameter from its gradient. Frozen parameters and those without a
  // gradient are left alone. May be called as soon as the gradient is complete (Tape::backward,
  // on_ready).
  void step(Parameter& parameter);
  // step() for all parameters in order.
  void step();
  // From now on until advance(), gradients count as scaled so that their joint 2-norm is at most
  // max_norm; returns the norm before. Throws Error if a gradient is not kept: a released gradient
  // is gone when the norm is known.
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
  // Updates left out because of a gradient that was not finite.
  std::int64_t skipped_updates() const { return skipped_updates_; }
  // Of the updates since the last call; parameters that were not watched meanwhile are left out.
  std::vector<Reach> take_reach();

  // Moments and other state of rules, in a fixed order; writing to the bytes restores them.
  std::vector<StatePlane> state();
  // Bytes of state that `spec` would need under `group`; allocates nothing.
  static std::int64_t state_bytes(const ParameterSpec& spec, const GroupSpec& group);

 private:
  struct State {
    Parameter* parameter = nullptr;
    GroupSpec group;
    double initial_size = 0.0;  // root mean square of the master at the start
    std::unique_ptr<Rule> rule;
    Runs runs{Shape{0}, kBlock};
    std::vector<MomentSpec> moment_specs;
    std::vector<Storage> moments;
    std::vector<PlaneSpec> plane_specs;
    std::vector<Buffer> planes;
    Buffer updates;  // I64: updates so far, t of the rule; empty for rules without memory
    std::optional<double> reach;  // largest |lr * direction| since take_reach()
  };
  // One update of one parameter, while it is under way.
  struct Update {
    Descent descent;
    EcoStep eco;
    bool watch;  // whether the largest direction is wanted
  };
  struct UnitResult {
    FlipCounts flips;
    float peak;  // largest |direction|
  };
  struct Run;
  struct RunScratch;

  double lr_at(const State& state, std::int64_t step) const;
  State& find(const Parameter& parameter);
  const float* read_gradient(const State& state, std::int64_t first, std::int64_t n,
                             float* scratch) const;
  void step_run(State& state, const Update& update, const Run& run, RunScratch& scratch,
                UnitResult& result);
  static FlipCounts descend_with_eco(Storage& storage, const Update& update, const Block& block,
                                     float* weight, const float* direction, const float* gain,
                                     float* momentum);

  std::deque<State> states_;
  ParameterStore* store_;
  std::int64_t total_steps_;
  std::uint64_t seed_;
  NonFinite on_non_finite_;
  std::int64_t steps_done_ = 0;
  float gradient_scale_ = 1.0f;  // by clip_grad_norm(), until advance()
  FlipCounts flips_;
  std::int64_t skipped_updates_ = 0;
};

}  // namespace tritgrad
