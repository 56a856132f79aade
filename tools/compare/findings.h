// What a comparison shows, in sentences made from its numbers.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/record.h"
#include "tools/compare/summary.h"

namespace tritgrad {

// Which recipes are below and above the baseline, which cannot be told from it, what diverged, what
// lies on the Pareto front, which learning rates lie on the edge of what was tried.
std::vector<std::string> findings(const ComparisonRecord& record, const Comparison& comparison);

// The question that all records answer, neither more nor less.
std::string question(const std::vector<ComparisonRecord>& records);

}  // namespace tritgrad
