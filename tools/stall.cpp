#include "tools/stall.h"

#include <fmt/format.h>

namespace tritgrad {

std::string StallWatch::look(const Optimizer& optimizer) {
  if (resumed_ || warned_ || 4 * optimizer.steps_done() < optimizer.total_steps()) return "";
  for (const Reach& reach : optimizer.reach()) {
    if (reach.movable > 0.0) continue;
    warned_ = true;
    const ParameterSpec& spec = reach.parameter->spec();
    return fmt::format(
        "rounding to nearest loses all updates of '{}': the largest so far, {:.2g}, moves none of "
        "its "
        "weights (format {}); raise the learning rate, set weight.rounding=stochastic, or use a "
        "format with a residual",
        spec.name, reach.update, format_name(spec.format.kind));
  }
  return "";
}

std::optional<double> StallWatch::movable(const Optimizer& optimizer,
                                          const ParameterStore& store) const {
  if (resumed_) return std::nullopt;
  double weights = 0.0, stuck = 0.0;
  for (const Parameter& parameter : store) {
    if (parameter.spec().role == Role::kWeight) {
      weights += static_cast<double>(parameter.shape().size());
    }
  }
  for (const Reach& reach : optimizer.reach()) {
    stuck += (1.0 - reach.movable) * static_cast<double>(reach.parameter->shape().size());
  }
  return weights > 0.0 ? 1.0 - stuck / weights : 1.0;
}

}  // namespace tritgrad
