// The tables of a comparison: one for the terminal, those of its page.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/record.h"
#include "tools/compare/summary.h"
#include "tools/report/page.h"

namespace tritgrad {

std::string render_terminal_table(const ComparisonRecord& record);

// Recipes by comparisons: the difference to the baseline, with its interval.
PageTable overview_table(const std::vector<ComparisonRecord>& records);

PageTable accuracy_table(const ComparisonRecord& record, const Comparison& comparison);
PageTable bytes_table(const Comparison& comparison);
// The validation accuracy at every learning rate that was tried.
PageTable tuning_table(const ComparisonRecord& record);
PageTable runs_table(const ComparisonRecord& record);

}  // namespace tritgrad
