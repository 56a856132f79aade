// The study as files of one folder: curves and numbers as CSV, beside pictures and a page.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "tools/study/study_run.h"

namespace tritgrad {

// Name and contents of each file; the last one is the page, which speaks of the others.
using StudyFiles = std::vector<std::pair<std::string, std::string>>;

// In CSV files a value that does not exist or is not finite is an empty cell.
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
// All CSV files by name.
StudyFiles study_csv_files(const StudyResults& results);

// All of them are on the disk under other names before the first takes its own: a disk that is full
// leaves an older study as it was, and nothing of the new one. A process that is killed while names
// change leaves no page rather than one beside files of other runs.
void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls = {});

}  // namespace tritgrad
