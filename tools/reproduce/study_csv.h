// The study as CSV files. A value that does not exist or is not finite is an empty cell.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/reproduce/study_run.h"

namespace tritgrad {

// Columns: epoch, then one for each variant of the figure (see variant_key), the median over seeds.
std::string figure_csv(const StudyFigure& figure, const StudyResults& results);
// Columns: step modulo ten, then for some variants the relative difference of consecutive updates.
std::string period_csv(const StudyResults& results);
// Columns: parameters, rule, bytes_per_parameter, seconds_per_step, lower_quartile, upper_quartile
// (of the seconds).
std::string cost_csv(const std::vector<CostPoint>& costs);
// One line for each variant and seed with every number that the page rests on.
std::string numbers_csv(const StudyResults& results);

// All of them by file name.
std::vector<std::pair<std::string, std::string>> study_csv_files(const StudyResults& results);

}  // namespace tritgrad
