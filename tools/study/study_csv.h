// The study as CSV files. A value that does not exist or is not finite is an empty cell.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/study/study_run.h"

namespace tritgrad {

// Columns: epoch, then three for each variant of the figure (see variant_key): median, smallest and
// largest loss over seeds, KEY_median, KEY_min and KEY_max.
std::string figure_csv(const StudyFigure& figure, const StudyResults& results);
// Columns: lag in epochs, then three for each variant of Figure 9; data sets differ in how far.
std::string autocorrelation_csv(const StudyFigure& figure, const StudyResults& results);
// Columns: step modulo ten, then three for some variants: the relative difference of consecutive
// updates.
std::string period_csv(const StudyResults& results);
// One line for each rule and size; the quartiles are those of the seconds.
std::string cost_csv(const std::vector<CostPoint>& costs);
// One line for each variant and seed with every number that the page rests on. Shares are of 1.
std::string numbers_csv(const StudyResults& results);

// All of them by file name.
std::vector<std::pair<std::string, std::string>> study_csv_files(const StudyResults& results);

}  // namespace tritgrad
