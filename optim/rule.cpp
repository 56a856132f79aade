#include "optim/rule.h"

#include "engine/check.h"
#include "engine/nearest.h"
#include "optim/rules/adamw.h"
#include "optim/rules/normalized.h"
#include "optim/rules/sgd.h"
#include "optim/rules/sign.h"

namespace tritgrad {
namespace {

constexpr std::string_view kNames[] = {"sgd", "adamw", "sign", "normalized"};

void check_range(const char* name, double value, double low, double high, bool high_included) {
  const bool ok = value >= low && (high_included ? value <= high : value < high);
  check(ok, "rule: ", name, " = ", value, " is outside [", low, ", ", high,
        high_included ? "]" : ")");
}

}  // namespace

std::string_view rule_name(RuleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

RuleKind parse_rule(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<RuleKind>(i);
  }
  fail("unknown rule '", name, "'",
       did_you_mean(name, std::vector<std::string>(std::begin(kNames), std::end(kNames))));
}

std::unique_ptr<Rule> make_rule(const RuleSpec& spec) {
  check_range("beta1", spec.beta1, 0.0, 1.0, false);
  check_range("beta2", spec.beta2, 0.0, 1.0, false);
  check_range("normalizer_beta", spec.normalizer_beta, 0.0, 1.0, false);
  check_range("momentum", spec.momentum, 0.0, 1.0, false);
  check_range("weight_decay", spec.weight_decay, 0.0, 1.0, spec.kind != RuleKind::kSign);
  check(spec.eps > 0.0, "rule: eps = ", spec.eps, " must be positive");
  check(!spec.nesterov || spec.momentum > 0.0, "rule: nesterov needs momentum > 0");
  switch (spec.kind) {
    case RuleKind::kSgd:
      return std::make_unique<Sgd>(spec);
    case RuleKind::kAdamw:
      return std::make_unique<Adamw>(spec);
    case RuleKind::kSign:
      return std::make_unique<Sign>(spec);
    case RuleKind::kNormalized:
      return std::make_unique<Normalized>(spec);
  }
  fail("rule: unknown rule number ", static_cast<int>(spec.kind));
}

}  // namespace tritgrad
