// What a trained model says of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/data/dataset.h"
#include "models/training/evaluate.h"

namespace tritgrad {

// Returns the outputs [rows x outputs] of these rows of the data, as evaluate() computes them:
// logits of classes, or of regression the standardised target. Labels of the data are not looked
// at. Throws Error for a language model.
std::vector<float> predict_logits(const LoadedModel& loaded, const Dataset& dataset,
                                  std::span<const std::int32_t> rows);

// Returns the number that a model of regression predicts for each of these rows, in the units of
// the label. Throws Error for a model of classes.
std::vector<double> predict_values(const LoadedModel& loaded, const Dataset& dataset,
                                   std::span<const std::int32_t> rows);

// Turns the logits of a row into probabilities, e^logit over their sum.
void softmax_of_row(const float* logits, std::int64_t classes, float* probabilities);

}  // namespace tritgrad
