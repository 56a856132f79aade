// Accuracy of a model on rows of a dataset.
#pragma once

#include <optional>
#include <vector>

#include "engine/dataset.h"
#include "engine/standardizer.h"
#include "models/model.h"

namespace tritgrad {

// Share of rows whose largest logit is that of the label; nothing for no rows. The model is not
// changed.
std::optional<double> evaluate(Model& model, const Dataset& dataset,
                               const std::vector<std::int32_t>& rows,
                               const Standardizer& standardizer);

}  // namespace tritgrad
