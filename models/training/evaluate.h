// The scores of a model, in training or saved in a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "models/networks/model.h"
#include "models/training/confusion.h"
#include "models/training/metric.h"
#include "models/training/saved_run.h"
#include "models/training/task.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {

// Returns how good the model is on the rows; nothing for no rows. The model is not changed. The
// tape, which must be empty, lends its memory. With `ranks`, which all have the same model, each of
// them looks at some of the rows. The class that every row is taken for is counted in `confusion`,
// if there is one.
std::optional<Scores> evaluate(Model& model, Tape& tape, const Task& task,
                               std::span<const std::int32_t> rows, Communicator* ranks = nullptr,
                               Confusion* confusion = nullptr);

// A model out of a checkpoint, and the standardisation of its inputs and of its targets.
struct LoadedModel {
  SavedModel plan;
  std::unique_ptr<Model> model;
  Standardizer standardizer;
  bool is_regression = false;
  TargetScale target_scale = {};  // of regression
};
// Loads a model for whatever rows its inputs are.
LoadedModel load_model(const SavedRun& saved);
// Loads a model for data, whose labels become numbers of the model's classes, if it has classes,
// some of which they may lack. Throws Error for data that do not fit.
LoadedModel load_model(const SavedRun& saved, Dataset& dataset);

// The rows that a saved model is scored on: the test rows of the data that it was trained on and of
// data with a published test set, else all rows.
struct ScoredRows {
  RowNumbers rows;
  bool all;
};
ScoredRows scored_rows(const SavedRun& saved, const Dataset& dataset);

struct Evaluation {
  std::string checkpoint, data, recipe;
  Metric metric;
  Scores scores;
  std::int64_t rows, steps;
  bool all_rows;                       // else the test rows
  std::optional<Confusion> confusion;  // where the classes of the data are uneven
  Remarks remarks;                     // on the data
};

// Evaluates a checkpoint on scored_rows(), with data standardised as in training. Of labels see
// load_model().
Evaluation evaluate_checkpoint(const SavedRun& saved, Dataset& dataset);
std::string to_json(const Evaluation& evaluation);

}  // namespace tritgrad
