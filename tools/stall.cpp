#include "tools/stall.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/report/numbers.h"

namespace tritgrad {

namespace {

// Where chance rounds, or ECO carries what rounding loses, nothing but fp32 is in the way.
std::string remedy(const FormatSpec& format, EcoForm eco) {
  if (!format.traits().rounds_updates || format.rounding == Rounding::kStochastic ||
      eco != EcoForm::kOff) {
    return "raise the learning rate";
  }
  return std::string("raise the learning rate") +
         (format.traits().has_residual ? " or set weight.rounding=stochastic"
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

// Of `count` matrices one is named.
std::string and_others(int count) {
  return count > 1 ? fmt::format(" and of {} more", count - 1) : "";
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
  return fmt::format("the learning rate of '{}'{} is 0: no weight there moves", *first,
                     and_others(resting));
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

std::string StallWatch::look_at_end(const Optimizer& optimizer, const ParameterStore& store,
                                    std::int64_t flips) const {
  const std::int64_t steps = optimizer.steps_done();
  if (warned_ || flips > 0 || steps < optimizer.total_steps()) return "";
  const std::string* first = nullptr;
  int matrices = 0;
  for (const Parameter& parameter : store) {
    if (!parameter.storage().holds_trits() || optimizer.group(parameter).lr == 0.0) continue;
    if (matrices++ == 0) first = &parameter.name();
  }
  if (matrices == 0) return "";
  return fmt::format(
      "no trit of '{}'{} flipped in {}, so that the ternary weights end as they began; raise the "
      "learning rate or train longer",
      *first, and_others(matrices), counted(steps, "step"));
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

std::string warning_of_skips(std::int64_t skipped, std::int64_t steps, double train_loss) {
  constexpr double kWorthAWarning = 0.1;
  const double share = steps > 0 ? static_cast<double>(skipped) / static_cast<double>(steps) : 0.0;
  if (skipped == 0 || (share < kWorthAWarning && std::isfinite(train_loss))) return "";
  return fmt::format(
      "updates of {} of {} ({}) were left out, as a loss or a gradient was not finite{}; lower the "
      "learning rate and check the data",
      skipped, counted(steps, "step"), percent(share, 1),
      std::isfinite(train_loss) ? "" : ", all of the last epoch among them");
}

}  // namespace tritgrad
