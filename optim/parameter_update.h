// One update of one parameter: gradient -> rule -> direction -> storage.
//
// A parameter is walked through in chunks, and each chunk is read, directed and moved before the
// next one is. In the simplest case the rule's direction is the gradient itself, scaled, or its
// signs: then nothing is written between the gradient (floats, or the sums of an integer product)
// and the storage.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/parameter.h"
#include "optim/chunks.h"
#include "optim/eco.h"
#include "optim/fused_carry.h"
#include "optim/fused_split24.h"
#include "optim/rule.h"
#include "optim/schedule.h"
#include "optim/stalled_updates.h"

namespace tritgrad {

// The settings by which one group of parameters is trained.
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
  friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

// A parameter that is trained, with its rule and the state of the rule.
struct TrainedParameter {
  // Throws Error for a group that contradicts itself.
  TrainedParameter(Parameter& parameter, const GroupSpec& group);

  Parameter* parameter;
  GroupSpec group;
  std::unique_ptr<Rule> rule;
  std::vector<MomentSpec> moment_specs;
  std::vector<Storage> moments;
  std::vector<PlaneSpec> plane_specs;
  std::vector<Buffer> planes;
  std::optional<FusedSplit24> fused;
  std::optional<FusedCarry> carries;
  // The form in which a direction is made, as far as moments and the format of the weight allow it.
  Rule::DirectionForm form;
  Buffer updates;  // I64: updates so far, t of the rule; empty for rules without memory
  StalledUpdates watch;
};

// Returns whether updates of a rule depend on earlier ones.
bool has_memory(const Rule& rule, const Shape& shape);

class ParameterUpdate {
 public:
  // The gradient is finite, and the rule's begin() has been called. gradient_scale multiplies the
  // gradient; is_watched: what moves is noted for TrainedParameter::watch.
  ParameterUpdate(TrainedParameter& trained, const Descent& descent, const EcoStep& eco,
                  float gradient_scale, bool is_watched);

  // Updates all elements, the moments included; returns the flips.
  FlipCounts run();

 private:
  // Rows [row_begin, row_end) of a parameter: one part of the pass.
  struct Unit {
    std::int64_t row_begin, row_end;
    std::int64_t slot;
  };
  struct Scratch;

  void update_unit(const Unit& unit, FlipCounts& flips);
  // Update the chunks of a unit. With kScaledGradient the direction is factor times the gradient,
  // and they return the gradient's sum of squares; else 0.
  double walk_memory(const Unit& unit, float factor, FlipCounts& flips);
  double walk_tiles(const Unit& unit, float factor, FlipCounts& flips);

  // Updates one chunk. squares: out, by block, of the gradient, with kScaledGradient.
  void update_chunk(const Chunk& chunk, float factor, double* squares, Scratch& scratch,
                    FlipCounts& flips);
  void move_by_gradient(const Chunk& chunk, float factor, double* squares, FlipCounts& flips);
  void move_tile_by_gradient(const Chunk& tile, float factor, double* squares, FlipCounts& flips);
  void move_blocks(const BlockSeries& series, std::span<const Direction> directions,
                   double* squares, FlipCounts& flips);
  void move_by_rule(const Chunk& chunk, Scratch& scratch, FlipCounts& flips);
  void carry_errors(const Chunk& chunk, FlipCounts& flips);
  // Updates what can be updated in one pass; returns what is left of the chunk.
  Chunk move_fused(const Chunk& chunk, Scratch& scratch) const;

  PrefetchList memory_of(const Chunk& chunk) const;
  bool limits_gradient() const;
  const float* limit_gradient(const float* grad, std::int64_t n, float* scratch) const;
  const float* read_gradient(const Chunk& chunk, float* scratch) const;
  bool decodes_master() const;
  RuleBlock read_chunk(const Chunk& chunk, const float* grad, Scratch& scratch) const;
  FlipCounts descend(const Chunk& chunk, const RuleBlock& block, Scratch& scratch);
  void prefetch_ahead(const RuleBlock& block, std::int64_t offset, std::int64_t n) const;
  void store_moments(const Chunk& chunk, Scratch& scratch);

  TrainedParameter& trained_;
  Parameter& parameter_;
  Storage& storage_;
  const LazyGradient* lazy_;  // null: the gradient is in memory
  Descent descent_;
  EcoStep eco_;
  float gradient_scale_;
  bool is_watched_;
  bool in_tiles_;    // the gradient is read in tiles
  bool in_place_;    // weight or moments are used where they lie, in fp32
  bool adds_sums_;   // a moment is a sum, which is added up along the rows
  bool is_written_;  // the rule writes a direction
  bool measures_;    // the rule wants the sum of squares of the gradient
};

}  // namespace tritgrad
