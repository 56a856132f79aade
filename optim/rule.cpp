#include "optim/rule.h"

#include <cmath>

#include "engine/check.h"
#include "engine/names.h"
#include "optim/rules/adam.h"
#include "optim/rules/lion.h"
#include "optim/rules/microadam.h"
#include "optim/rules/normalized.h"
#include "optim/rules/sgd.h"
#include "optim/rules/shifted.h"
#include "optim/rules/sign.h"

namespace tritgrad {
namespace {

constexpr Names<RuleKind, kRuleCount> kRuleNames{"rule",
                                                 {{{RuleKind::kSgd, "sgd"},
                                                   {RuleKind::kSgdw, "sgdw"},
                                                   {RuleKind::kAdam, "adam"},
                                                   {RuleKind::kAdamw, "adamw"},
                                                   {RuleKind::kLion, "lion"},
                                                   {RuleKind::kSign, "sign"},
                                                   {RuleKind::kNormalized, "normalized"},
                                                   {RuleKind::kMicroadam, "microadam"},
                                                   {RuleKind::kShifted, "shifted"}}}};

void check_range(const char* name, double value, double low, double high, bool high_included) {
  const bool ok = value >= low && (high_included ? value <= high : value < high);
  check(ok, "rule: ", name, " = ", value, " is outside [", low, ", ", high,
        high_included ? "]" : ")");
}

void check_eps(double eps) {
  check(eps > 0.0 && std::isfinite(eps), "rule: eps = ", eps,
        " must be positive and finite; it keeps 0 / 0 away, 1e-8 by default");
  const auto used = static_cast<float>(eps);
  check(used > 0.0f && std::isfinite(used), "rule: eps = ", eps, " becomes ",
        used > 0.0f ? "infinite" : "0",
        " in fp32, in which rules compute; give one from 1e-38 to 1e38");
}

void check_microadam(const RuleSpec& spec) {
  check(spec.density > 0.0 && spec.density <= 1.0, "microadam: density = ", spec.density,
        " is outside (0, 1]; it is the share of the gradient that is kept, 0.01 by default");
  check_whole_setting("window", spec.window);
  check_whole_setting("feedback_bits", spec.feedback_bits);
  check_whole_setting("bucket", spec.bucket);
}

}  // namespace

std::string_view rule_name(RuleKind kind) { return kRuleNames.name(kind); }
RuleKind parse_rule(std::string_view name) { return kRuleNames.parse(name); }

void check_whole_setting(std::string_view key, std::int64_t value) {
  if (key == "feedback_bits") {
    check(value == 0 || (value >= 2 && value <= 8), "microadam: feedback_bits = ", value,
          " is neither 0 (no error feedback) nor 2 to 8");
    return;
  }
  const std::int64_t lowest = key == "bucket" ? 2 : 1;
  const std::int64_t highest = key == "bucket" ? Microadam::kElements : 255;
  check(value >= lowest && value <= highest, "microadam: ", key, " = ", value, " is outside ",
        lowest, "..", highest);
}

std::unique_ptr<Rule> make_rule(const RuleSpec& spec) {
  check_range("beta1", spec.beta1, 0.0, 1.0, false);
  check_range("beta2", spec.beta2, 0.0, 1.0, false);
  check_range("momentum", spec.momentum, 0.0, 1.0, false);
  check_range("dampening", spec.dampening, 0.0, 1.0, true);
  check_range("weight_decay", spec.weight_decay, 0.0, 1.0, spec.kind != RuleKind::kSign);
  check_range("clip_direction", spec.clip_direction, 0.0, 1e30, false);
  check_eps(spec.eps);
  check(!spec.nesterov || (spec.momentum > 0.0 && spec.dampening == 0.0),
        "rule: nesterov needs momentum > 0 and dampening = 0");
  switch (spec.kind) {
    case RuleKind::kSgd:
    case RuleKind::kSgdw:
      return std::make_unique<Sgd>(spec);
    case RuleKind::kAdam:
    case RuleKind::kAdamw:
      return std::make_unique<Adam>(spec);
    case RuleKind::kLion:
      return std::make_unique<Lion>(spec);
    case RuleKind::kSign:
      return std::make_unique<Sign>(spec);
    case RuleKind::kNormalized:
      return std::make_unique<Normalized>(spec);
    case RuleKind::kMicroadam:
      check_microadam(spec);
      return std::make_unique<Microadam>(spec);
    case RuleKind::kShifted:
      return std::make_unique<Shifted>();
  }
  fail("rule: unknown rule number ", static_cast<int>(spec.kind));
}

}  // namespace tritgrad
