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
#include "optim/flash.h"
#include "optim/rule.h"
#include "optim/runs.h"
#include "optim/schedule.h"
#include "optim/stalled_updates.h"

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
  ColumnBlocks order{};
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
  // step() for all parameters in order. Gradients that are not finite are refused before any
  // parameter has moved.
  void step();
  // From now on until advance(), gradients count as scaled so that their joint 2-norm is at most
  // max_norm (> 0); returns the norm before. A norm that is not finite is refused, or the whole
  // step is skipped. Throws Error if a gradient is not kept: a released gradient is gone when the
  // norm is known.
  double clip_grad_norm(double max_norm);
  // Ends the step without any update, and counts it; kept gradients are zeroed.
  void skip_step();
  // Ends the step: schedules advance, kept gradients are zeroed.
  void advance();

  std::int64_t steps_done() const { return steps_done_; }
  // To be called when state() was filled from a checkpoint, with its skipped_updates(). Throws
  // Error for numbers of steps or updates that no run can have made.
  void resume_at(std::int64_t steps, std::int64_t skipped_updates = 0);
  std::int64_t total_steps() const { return total_steps_; }
  // How a trainable parameter is trained, and its moments, in the order of Rule::moments().
  const GroupSpec& group(const Parameter& parameter) const { return find(parameter).group; }
  const Storage& moment(const Parameter& parameter, std::size_t index) const {
    return find(parameter).moments.at(index);
  }
  // Freezes the variance of all parameters (FreezesVariance), which have had so many updates.
  void freeze_variance(std::int64_t updates);
  // The learning rate that `parameter` would be updated with now.
  double lr(const Parameter& parameter) const;
  // Trits that changed since the last call.
  FlipCounts take_flips();
  // Steps of the run of which updates were left out, because a loss or a gradient was not finite.
  std::int64_t skipped_updates() const { return skipped_updates_; }
  // What at most 256 steps of a run did to each matrix; of one with the learning rate 0 nothing
  // moves.
  std::vector<Movement> movements() const;

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
    std::optional<FlashPlanes> flash;  // of the weight and its moments
    std::vector<PlaneSpec> plane_specs;
    std::vector<Buffer> planes;
    Rule::DirectionForm form{};  // if the moments and the format of the weight allow it
    Buffer updates;  // I64: updates so far, t of the rule; empty for rules without memory
    StalledUpdates watch;
  };
  // One update of one parameter, while it is under way.
  struct Update {
    Descent descent;
    EcoStep eco;
    bool watch;
  };
  // Rows [row_begin, row_end) of a parameter: one part of the pass.
  struct Unit {
    std::int64_t row_begin, row_end;
    std::int64_t slot;
  };
  // The same columns of some rows of a parameter, and the part of the pass that they belong to.
  struct Run {
    std::int64_t row_begin, row_end, col_begin, col_end;
    std::int64_t slot;

    std::int64_t size() const { return (row_end - row_begin) * (col_end - col_begin); }
  };
  struct RunScratch;

  double lr_at(const State& state, std::int64_t step) const;
  const State& find(const Parameter& parameter) const;
  State& find(const Parameter& parameter);
  static PrefetchList memory_of(const State& state, const Run& run);
  const float* read_gradient(const State& state, const Run& run, float* scratch) const;
  bool limits_gradient(const State& state) const {
    return gradient_scale_ != 1.0f || state.group.clip_value != 0.0;
  }
  const float* limit_gradient(const State& state, const float* grad, std::int64_t n,
                              float* scratch) const;
  void step_rows(State& state, const Update& update, const Unit& unit, FlipCounts& flips);
  void step_tiles(State& state, const Update& update, const Unit& unit, FlipCounts& flips);
  // A rule that takes the gradient, or its signs: it is read as it lies, and nothing is decoded.
  void step_unwritten(State& state, const Update& update, const Unit& unit, FlipCounts& flips);
  double step_unwritten_rows(State& state, const Update& update, const Unit& unit, float factor,
                             FlipCounts& flips);
  double step_unwritten_tiles(State& state, const Update& update, const Unit& unit, float factor,
                              FlipCounts& flips);
  void step_unwritten_tile(State& state, const Update& update, const Run& tile, float factor,
                           double* squares, FlipCounts& flips);
  static void descend_unwritten(State& state, const Update& update, const BlockSeries& series,
                                std::span<const Direction> directions, double* squares,
                                FlipCounts& flips);
  void check_gradients() const;
  void note_skip();
  void apply(State& state);
  void step_run(State& state, const Update& update, const Run& run, const float* grad,
                RunScratch& scratch, FlipCounts& flips);
  // Updates what can be updated in one pass; returns what is left of the run.
  Run step_at_once(const State& state, const Update& update, const Run& run,
                   RunScratch& scratch) const;
  static RuleBlock read_run(State& state, const Run& run, const float* grad, RunScratch& scratch);
  // Whether a run's weights are decoded as masters.
  static bool decodes_master(const State& state);
  static FlipCounts descend_run(State& state, const Update& update, const Run& run,
                                const RuleBlock& block, RunScratch& scratch);

  std::deque<State> states_;
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
