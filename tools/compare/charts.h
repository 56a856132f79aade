// The pictures of a report, made from the runs and their comparison.
#pragma once

#include <vector>

#include "tools/compare/record.h"
#include "tools/compare/summary.h"
#include "tools/report/page.h"

namespace tritgrad {

// Accuracy against bytes, bytes by category, training loss and accuracies by epoch; a picture
// without data is left out, and so is a scatter of a single recipe. Validation accuracy is that of
// the chosen trials where rates were tuned. `prefix` begins their names.
std::vector<Figure> draw_charts(const ComparisonRecord& record, const Comparison& comparison,
                                const std::string& prefix = "");

}  // namespace tritgrad
