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
#include "optim/parameter_update.h"

namespace tritgrad {

// The fate of an update whose gradient is not finite. Its weights and state stay as they are.
enum class NonFinite {
  kRefuse,  // Error that names the parameter
  kSkip,    // the update is left out and counted
};

class Optimizer {
 public:
  // Chooses the group of a parameter; called once for each trainable parameter.
  using GroupOf = std::function<GroupSpec(const ParameterSpec&)>;

  // `total_steps` is what schedules refer to; `seed` keys stochastic rounding. Throws Error for a
  // group that contradicts itself.
  Optimizer(ParameterStore& store, const GroupOf& group_of, std::int64_t total_steps,
            std::uint64_t seed, NonFinite on_non_finite = NonFinite::kRefuse);

  // Updates one parameter from its gradient. Frozen parameters and those without a
  // gradient are left alone. May be called as soon as the gradient is complete (Tape::backward,
  // on_ready).
  void step(Parameter& parameter);
  // Calls step() for all parameters in order. Gradients that are not finite are refused before any
  // parameter has moved.
  void step();
  // Lets gradients count, until advance(), as scaled so that their joint 2-norm is at most max_norm
  // (> 0); returns the norm before. A norm that is not finite is refused, or the whole step is
  // skipped. Throws Error if a gradient is not kept: a released gradient is gone when the norm is
  // known.
  double clip_grad_norm(double max_norm);
  // Ends the step without any update, and counts it; kept gradients are zeroed.
  void skip_step();
  // Ends the step: schedules advance, kept gradients are zeroed.
  void advance();

  std::int64_t steps_done() const { return steps_done_; }
  // Is called when state() was filled from a checkpoint, with its skipped_updates(). Throws
  // Error for numbers of steps or updates that no run can have made.
  void resume_at(std::int64_t steps, std::int64_t skipped_updates = 0);
  std::int64_t total_steps() const { return total_steps_; }
  // Return the settings of a trainable parameter, and its moments, in the order of Rule::moments().
  const GroupSpec& group(const Parameter& parameter) const { return find(parameter).group; }
  const Storage& moment(const Parameter& parameter, std::size_t index) const {
    return find(parameter).moments.at(index);
  }
  // Freezes the variance of all parameters (FreezesVariance), which have had so many updates.
  void freeze_variance(std::int64_t updates);
  // Returns the learning rate that `parameter` would be updated with now.
  double lr(const Parameter& parameter) const;
  // Returns the trits that changed since the last call.
  FlipCounts take_flips();
  // Returns the steps of the run of which updates were left out, because a loss or a gradient was
  // not finite.
  std::int64_t skipped_updates() const { return skipped_updates_; }
  // Returns the movement of each matrix in at most 256 steps of a run; nothing moves in one with
  // the learning rate 0.
  std::vector<Movement> movements() const;

  // Returns moments and other state of rules, in a fixed order; writing to the bytes restores them.
  std::vector<NamedArray> state();
  // Returns the bytes of state that `spec` would need under `group`; allocates nothing.
  static std::int64_t state_bytes(const ParameterSpec& spec, const GroupSpec& group);

 private:
  double lr_at(const TrainedParameter& trained, std::int64_t step) const;
  const TrainedParameter& find(const Parameter& parameter) const;
  TrainedParameter& find(const Parameter& parameter);
  void check_gradients() const;
  void note_skip();
  void apply(TrainedParameter& trained);

  std::deque<TrainedParameter> trained_;
  ParameterStore* store_;
  std::int64_t total_steps_;
  std::uint64_t seed_;
  NonFinite on_non_finite_;
  std::int64_t steps_done_ = 0;
  float gradient_scale_ = 1.0f;  // by clip_grad_norm(), until advance()
  bool skip_step_ = false;       // the joint norm is not finite, until advance()
  FlipCounts flips_;
  std::int64_t skipped_updates_ = 0;
  bool skips_ = false;  // this step is counted there
};

}  // namespace tritgrad
