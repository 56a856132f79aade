// The study as files of one folder: CSV files, pictures, and a page that holds all pictures.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "tools/report/svg.h"
#include "tools/study/study_run.h"

namespace tritgrad {

// A plot is one pair of axes with a series for each line: median, and the band of all seeds. A
// picture draws them; a CSV file has three columns of each, KEY_median, KEY_min and KEY_max, and
// holds those of all plots that name it.
struct StudyPlot {
  LineChart chart;
  std::string caption;
  std::string csv = {};                // name of the file without ".csv"; empty: none
  std::string index = {};              // name of the file's first column, which is x
  bool drawn = true;                   // false: only in the CSV file
  std::vector<std::string> keys = {};  // of the series in the file, see variant_key
};

// The middle of some values with the smallest and the largest. As in median(), values that are not
// finite count as larger than all others.
Spread spread_of(std::vector<double> values);  // at least one

// The plots of a figure in the order of its pictures. Panels of one data set have the same axis of
// losses.
std::vector<StudyPlot> figure_plots(const StudyFigure& figure, const StudyResults& results);

// Name and contents of each file; the last one is the page, which holds the pictures.
using StudyFiles = std::vector<std::pair<std::string, std::string>>;

// In CSV files a value that does not exist or is not finite is an empty cell, and shares are of 1.
// figureN.csv has the loss of every epoch, autocorrelation.csv and period.csv have Figure 9's other
// curves, figure8.csv has the costs, and numbers.csv has every number of every run. `command`
// repeats the study when typed into a shell.
StudyFiles study_files(const StudyResults& results, const std::string& command);

// Writes all files to the disk under other names before the first takes its own: a disk that is
// full leaves an older study as it was, and nothing of the new one. A process that is killed while
// names change leaves no page rather than one beside files of other runs.
void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls = {});

}  // namespace tritgrad
