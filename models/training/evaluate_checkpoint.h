// How good a saved model is.
#pragma once

#include <cstdint>
#include <string>

#include "models/training/saved_run.h"

namespace tritgrad {

struct Evaluation {
  std::string checkpoint, data, recipe;
  double accuracy;
  std::int64_t rows, steps;
  bool all_rows;  // else the test rows
};

// Accuracy of a checkpoint, standardised as in training: of the data that it was trained on, and of
// data with a published test set, on the test rows; else on all rows. Labels of the data become
// numbers of the model's classes, some of which they may lack.
Evaluation evaluate_checkpoint(const SavedRun& saved, Dataset& dataset);
std::string to_json(const Evaluation& evaluation);

}  // namespace tritgrad
