// The pictures of a report, made from the runs and their comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/run_result.h"
#include "tools/summary.h"

namespace tritgrad {

struct Figure {
  std::string caption;
  std::string svg;
};

// Training loss and accuracies by epoch, accuracy against bytes, bytes by category; a picture
// without data is left out, and so is a scatter of a single recipe.
std::vector<Figure> draw_figures(const std::vector<RunResult>& runs, const Comparison& comparison);

}  // namespace tritgrad
