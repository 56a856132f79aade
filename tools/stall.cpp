#include "tools/stall.h"

#include <fmt/format.h>

namespace tritgrad {

namespace {

// Where chance rounds, or ECO carries what rounding loses, nothing but fp32 is in the way.
std::string remedy(const FormatSpec& format, EcoForm eco) {
  if (!rounds_updates(format.kind) || format.rounding == Rounding::kStochastic ||
      eco != EcoForm::kOff) {
    return "raise the learning rate";
  }
  return std::string("raise the learning rate") +
         (format.has_residual() ? " or set weight.rounding=stochastic"
                                : ", set weight.rounding=stochastic, or use a format with a "
                                  "residual");
}

std::string warning_of_rounding(const Reach& reach, EcoForm eco) {
  const ParameterSpec& spec = reach.parameter->spec();
  const bool none = reach.movable == 0.0;
  return fmt::format(
      "rounding loses {} updates of '{}': the largest so far, {:.2g}, moves {} of its "
      "weights (format {}); {}",
      none ? "all" : "nearly all", spec.name, reach.update,
      none ? std::string("none") : fmt::format("{:.2g} %", 100.0 * reach.movable),
      format_name(spec.format.kind), remedy(spec.format, eco));
}

// Of the matrices whose learning rate is 0; empty if there are none.
std::string warning_of_zero_rates(const Optimizer& optimizer, const ParameterStore& store) {
  const std::string* first = nullptr;
  int resting = 0, matrices = 0;
  for (const Parameter& parameter : store) {
    if (parameter.spec().role != Role::kWeight) continue;
    ++matrices;
    if (optimizer.group(parameter).lr != 0.0) continue;
    if (resting++ == 0) first = &parameter.name();
  }
  if (resting == 0) return "";
  if (resting == matrices) return "the learning rate of the weights is 0: none of them moves";
  const std::string others = resting > 1 ? fmt::format(" and of {} more", resting - 1) : "";
  return fmt::format("the learning rate of '{}'{} is 0: no weight there moves", *first, others);
}

}  // namespace

std::string StallWatch::look(const Optimizer& optimizer, const ParameterStore& store) {
  if (resumed_ || warned_ || 4 * optimizer.steps_done() < optimizer.total_steps()) return "";
  std::string warning;
  for (const Reach& reach : optimizer.reach()) {
    const GroupSpec& group = optimizer.group(*reach.parameter);
    if (group.lr == 0.0 || reach.movable >= kStalledShare) continue;
    warning = warning_of_rounding(reach, group.eco);
    break;
  }
  // A rate of 0 may be meant; what rounding loses is not.
  if (warning.empty()) warning = warning_of_zero_rates(optimizer, store);
  warned_ = !warning.empty();
  return warning;
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
