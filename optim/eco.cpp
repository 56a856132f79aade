#include "optim/eco.h"

#include "engine/check.h"

namespace tritgrad {
namespace {

// 1 / lr has to stay a float with room for E and the gain.
constexpr double kSmallestRate = 1e-20;

}  // namespace

void check_eco(const RuleSpec& spec, const FormatSpec& format) {
  const std::unique_ptr<Rule> rule = make_rule(spec);
  const std::string_view name = rule_name(spec.kind);
  switch (spec.kind) {
    case RuleKind::kLion:
    case RuleKind::kSign:
      fail("eco: rule '", name,
           "' takes the sign of what it has, so no magnitude is left in which a rounding error "
           "could be carried; use sgd, sgdw, adam, adamw, or normalized with a momentum, or a "
           "format with a residual");
    case RuleKind::kMicroadam:
      fail(
          "eco: microadam recomputes its moments from a window, so nothing persists that could "
          "carry an error; use adamw, or a format with a residual");
    default:
      break;
  }
  check(rule->eco_terms(1).momentum > 0.0, "eco: rule '", name,
        "' has momentum 0 here, and the error is carried in the momentum; set momentum (sgd, "
        "normalized) or beta1 (adam) above 0");
  check(!format.traits().has_residual, "eco: format '", format_name(format.kind),
        "' keeps its own residual, nothing is left to carry; use trits, int4, int8, fp8 or bf16");
}

double decoupled_decay(const RuleSpec& rule) {
  const bool decoupled = rule.kind == RuleKind::kSgdw || rule.kind == RuleKind::kAdamw;
  return decoupled ? rule.weight_decay : 0.0;
}

EcoStep eco_step(EcoForm form, const Rule& rule, double decay, double lr, double next_lr,
                 std::int64_t t) {
  if (form == EcoForm::kOff) return {};
  if (lr < kSmallestRate) return {.skip = true};
  const Rule::EcoTerms terms = rule.eco_terms(t);
  const double beta = terms.momentum;
  EcoStep step;
  step.alpha = static_cast<float>((1.0 - 1.0 / beta) / lr);
  if (next_lr < kSmallestRate || form == EcoForm::kPublished) return step;
  if (form == EcoForm::kRescaled) {
    step.rescale = static_cast<float>(lr / next_lr);
    return step;
  }
  // No error was carried into the first step, so none has to be taken out of it.
  const double carried = t == 1 ? 0.0 : (1.0 - lr * decay) / lr;
  const double given = (1.0 - next_lr * decay) / (beta * next_lr) / terms.gain_ratio;
  step.alpha = static_cast<float>(carried - given);
  return step;
}

}  // namespace tritgrad
