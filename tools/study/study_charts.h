// The pictures of a study, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/study/study_run.h"

namespace tritgrad {

struct StudyChart {
  std::string title;
  std::string caption;
  std::string svg;
};

// Loss by epoch for every panel; panels of one data set have the same loss axis.
std::vector<StudyChart> figure_charts(const StudyFigure& figure, const StudyResults& results);
// Roughness and final loss by the share of parameters that is really kept; `figure` is number 5.
std::vector<StudyChart> density_charts(const StudyFigure& figure, const StudyResults& results);
// Autocorrelation of the loss of epochs; `figure` is number 9.
std::vector<StudyChart> tremor_charts(const StudyFigure& figure, const StudyResults& results);
// What is drawn by step modulo ten.
std::vector<StudyLine> period_lines();
std::vector<StudyChart> period_charts(const StudyResults& results);
// Bytes per parameter and milliseconds per step by number of parameters.
std::vector<StudyChart> cost_charts(const std::vector<CostPoint>& costs);

// All of them as files, name and contents: figure3-1.svg and so on, in the order of the page.
std::vector<std::pair<std::string, std::string>> study_pictures(const StudyResults& results);

}  // namespace tritgrad
