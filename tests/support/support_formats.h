// All formats and all rules, for tests that must leave none out.
#pragma once

#include <array>
#include <vector>

#include "optim/rule.h"

namespace tritgrad::test {

// The uses of a format: weights, scales (above zero), moments of any sign, moments that are never
// negative, and those of which it keeps sums instead of elements.
enum FormatUse : unsigned { kWeight = 1, kScale = 2, kM = 4, kV = 8, kSumsOfV = 16 };

struct FormatRow {
  FormatKind kind;
  unsigned uses;
};
// The row of a format is at the place of its enumerator.
inline constexpr FormatRow kFormatRows[] = {{FormatKind::kFp32, kWeight | kM | kV},
                                            {FormatKind::kBf16, kWeight | kM | kV},
                                            {FormatKind::kTernary, kWeight},
                                            {FormatKind::kLatent8, kWeight},
                                            {FormatKind::kTernaryMaster, kWeight},
                                            {FormatKind::kScale16, kScale},
                                            {FormatKind::kTrits, kWeight},
                                            {FormatKind::kSplit24, kWeight},
                                            {FormatKind::kSplit32, kWeight},
                                            {FormatKind::kCompanded8, kM},
                                            {FormatKind::kRoot8, kV},
                                            {FormatKind::kLatent6, kWeight},
                                            {FormatKind::kLatent5, kWeight},
                                            {FormatKind::kLatent4, kWeight},
                                            {FormatKind::kInt8, kWeight | kM},
                                            {FormatKind::kInt4, kWeight | kM},
                                            {FormatKind::kFp8, kWeight},
                                            {FormatKind::kScalar, kSumsOfV},
                                            {FormatKind::kFactored, kSumsOfV},
                                            {FormatKind::kShared4, kWeight},
                                            {FormatKind::kShared8, kWeight},
                                            {FormatKind::kShared16, kWeight},
                                            {FormatKind::kFp8Master, kWeight},
                                            {FormatKind::kInt4Master, kWeight}};

constexpr bool every_format_has_its_row() {
  for (std::size_t i = 0; i < std::size(kFormatRows); ++i) {
    if (kFormatRows[i].kind != static_cast<FormatKind>(i)) return false;
  }
  return std::size(kFormatRows) == kFormatCount;
}
static_assert(every_format_has_its_row());

// The formats that have one of the uses.
inline std::vector<FormatKind> formats_for(unsigned uses) {
  std::vector<FormatKind> kinds;
  for (const FormatRow& row : kFormatRows) {
    if ((row.uses & uses) != 0) kinds.push_back(row.kind);
  }
  return kinds;
}

constexpr std::array<RuleKind, kRuleCount> every_rule() {
  std::array<RuleKind, kRuleCount> rules{};
  for (std::size_t i = 0; i < rules.size(); ++i) rules[i] = static_cast<RuleKind>(i);
  return rules;
}
inline constexpr std::array<RuleKind, kRuleCount> kAllRules = every_rule();

}  // namespace tritgrad::test
