// The groups that tests of ECO train by.
#pragma once

#include "tests/support/single.h"

namespace tritgrad::test {

inline constexpr double kBeta = 0.9;

inline GroupSpec eco_group(EcoForm form, double lr) {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgdw;
  group.rule.momentum = group.rule.dampening = kBeta;
  group.lr = lr;
  group.eco = form;
  return group;
}

}  // namespace tritgrad::test
