#include "tools/stall.h"

#include <fmt/format.h>

namespace tritgrad {

namespace {

std::string remedy(const FormatSpec& format) {
  if (!rounds_updates(format.kind)) return "raise the learning rate";
  return std::string("raise the learning rate") +
         (format.has_residual() ? " or set weight.rounding=stochastic"
                                : ", set weight.rounding=stochastic, or use a format with a "
                                  "residual");
}

std::string warning_of(const Reach& reach) {
  const ParameterSpec& spec = reach.parameter->spec();
  const bool none = reach.movable == 0.0;
  return fmt::format(
      "rounding to nearest loses {} updates of '{}': the largest so far, {:.2g}, moves {} of its "
      "weights (format {}); {}",
      none ? "all" : "nearly all", spec.name, reach.update,
      none ? std::string("none") : fmt::format("{:.2g} %", 100.0 * reach.movable),
      format_name(spec.format.kind), remedy(spec.format));
}

}  // namespace

std::string StallWatch::look(const Optimizer& optimizer) {
  if (resumed_ || warned_ || 4 * optimizer.steps_done() < optimizer.total_steps()) return "";
  for (const Reach& reach : optimizer.reach()) {
    if (reach.movable >= kStalledShare) continue;
    warned_ = true;
    return warning_of(reach);
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
