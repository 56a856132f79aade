#include "tools/stall.h"

#include <fmt/format.h>

#include <algorithm>

namespace tritgrad {

std::string StallWatch::look(Optimizer& optimizer) {
  constexpr double kStalled = 0.01;
  std::string warning;
  double movable = 0.0;
  double weights = 0.0;
  for (const Reach& reach : optimizer.take_reach()) {
    const ParameterSpec& spec = reach.parameter->spec();
    if (spec.role != Role::kWeight) continue;
    const double size = static_cast<double>(spec.shape.size());
    movable += reach.movable * size;
    weights += size;
    double& best = best_[spec.name];
    best = std::max(best, reach.movable);
    const bool late = 4 * optimizer.steps_done() >= optimizer.total_steps();
    if (best >= kStalled || !late || warned_) continue;
    warned_ = true;
    warning = fmt::format(
        "rounding to nearest loses the updates of '{}': the largest, {:.2g}, moves {:.1f} % of its "
        "weights ({}); raise the learning rate, set weight.rounding=stochastic, or use a format "
        "with a residual",
        spec.name, reach.update, 100.0 * reach.movable, format_name(spec.format.kind));
  }
  if (weights > 0.0) movable_ = std::max(movable_.value_or(0.0), movable / weights);
  return warning;
}

}  // namespace tritgrad
