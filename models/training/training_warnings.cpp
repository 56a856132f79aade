#include "models/training/training_warnings.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {

namespace {

// Returns the advice that ends a warning. Stochastic rounding and ECO lose no update but for the
// precision of fp32, so only a larger rate helps them.
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

// Returns two digits of a number: "0.012".
std::string two_digits(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

std::string warning_of_rounding(const Movement& movement, EcoForm eco) {
  const ParameterSpec& spec = movement.parameter->spec();
  const bool none = movement.moved == 0.0;
  return concat("rounding loses ", none ? "all" : "nearly all", " updates of '", spec.name,
                "': the largest so far, ", two_digits(movement.largest_update), ", moves ",
                none ? "none" : two_digits(100.0 * movement.moved) + " %",
                " of its weights (format ", format_name(spec.format.kind), "); ",
                remedy(spec.format, eco));
}

// The parameters that a warning is about.
struct Concerned {
  int count = 0;
  std::string names;  // "'layers.0.weight' and of 2 more"
};

template <typename Predicate>
Concerned concerned(const ParameterStore& store, const Predicate& predicate) {
  Concerned found;
  for (const Parameter& parameter : store) {
    if (!predicate(parameter)) continue;
    if (found.count++ == 0) found.names = concat("'", parameter.name(), "'");
  }
  if (found.count > 1) found.names += concat(" and of ", found.count - 1, " more");
  return found;
}

// Returns a warning that names the matrices whose learning rate is 0; empty if there are none.
std::string warning_of_zero_rates(const Optimizer& optimizer, const ParameterStore& store) {
  const auto is_weight = [](const Parameter& parameter) {
    return parameter.spec().role == Role::kWeight;
  };
  const Concerned resting = concerned(store, [&](const Parameter& parameter) {
    return is_weight(parameter) && optimizer.group(parameter).lr == 0.0;
  });
  if (resting.count == 0) return "";
  if (resting.count == concerned(store, is_weight).count) {
    return "the learning rate of the weights is 0: none of them moves";
  }
  return concat("the learning rate of ", resting.names, " is 0: no weight there moves");
}

}  // namespace

std::string StallWarnings::warning(const Optimizer& optimizer, const ParameterStore& store) {
  if (resumed_ || warned_ || 4 * optimizer.steps_done() < optimizer.total_steps()) return "";
  std::string warning;
  for (const Movement& movement : optimizer.movements()) {
    const GroupSpec& group = optimizer.group(*movement.parameter);
    if (group.lr == 0.0 || movement.moved >= kStalledShare) continue;
    warning = warning_of_rounding(movement, group.eco);
    break;
  }
  // A rate of 0 may be meant; what rounding loses is not.
  if (warning.empty()) warning = warning_of_zero_rates(optimizer, store);
  warned_ = !warning.empty();
  return warning;
}

std::string StallWarnings::warning_at_end(const Optimizer& optimizer, const ParameterStore& store,
                                          std::int64_t flips) const {
  const std::int64_t steps = optimizer.steps_done();
  if (warned_ || flips > 0 || steps < optimizer.total_steps()) return "";
  const Concerned trained = concerned(store, [&](const Parameter& parameter) {
    return parameter.storage().spec().traits().holds_trits && optimizer.group(parameter).lr != 0.0;
  });
  if (trained.count == 0) return "";
  return concat("no trit of ", trained.names, " flipped in ", counted(steps, "step"),
                ", so that the ternary weights end as they began; raise the learning rate or train "
                "longer");
}

std::optional<double> StallWarnings::movable_fraction(const Optimizer& optimizer,
                                                      const ParameterStore& store) const {
  if (resumed_) return std::nullopt;
  double weights = 0.0, stuck = 0.0;
  for (const Parameter& parameter : store) {
    if (parameter.spec().role == Role::kWeight) {
      weights += static_cast<double>(parameter.shape().size());
    }
  }
  for (const Movement& movement : optimizer.movements()) {
    stuck += (1.0 - movement.moved) * static_cast<double>(movement.parameter->shape().size());
  }
  return weights > 0.0 ? 1.0 - stuck / weights : 1.0;
}

std::string warning_of_skips(std::int64_t skipped, std::int64_t steps, double train_loss) {
  constexpr double kWorthAWarning = 0.1;
  const double share = steps > 0 ? static_cast<double>(skipped) / static_cast<double>(steps) : 0.0;
  if (skipped == 0 || (share < kWorthAWarning && std::isfinite(train_loss))) return "";
  std::array<char, 32> percent;
  std::snprintf(percent.data(), percent.size(), "%.1f %%", 100.0 * share);
  return concat("updates of ", skipped, " of ", counted(steps, "step"), " (", percent.data(),
                ") were left out, as a loss or a gradient was not finite",
                std::isfinite(train_loss) ? "" : ", all of the last epoch among them",
                "; lower the learning rate and check the data");
}

std::string warning_of_fit(double train_loss, std::optional<double> test_r2) {
  if (train_loss >= 1.0) {
    return concat("the rows to train on are predicted no better than by their mean (loss ",
                  two_digits(train_loss),
                  ", that of the mean is 1); lower the learning rate, train longer, or check the "
                  "labels");
  }
  if (test_r2.value_or(0.0) >= 0.0) return "";
  return concat("the test rows are predicted worse than by their mean (R² ", two_digits(*test_r2),
                "), though those to train on are not; give more rows, a smaller network or fewer "
                "epochs, and check the labels");
}

}  // namespace tritgrad
