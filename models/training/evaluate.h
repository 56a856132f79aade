// Accuracy of a model on rows of a dataset.
#pragma once

#include <optional>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/standardizer.h"
#include "models/networks/model.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {

// Share of rows whose largest logit is that of the label; nothing for no rows. The model is not
// changed. The tape, which must be empty, lends its memory. With `ranks`, which all have the same
// model, each of them looks at some of the rows.
std::optional<double> evaluate(Model& model, Tape& tape, const Dataset& dataset,
                               const std::vector<std::int32_t>& rows,
                               const Standardizer& standardizer, Communicator* ranks = nullptr);

}  // namespace tritgrad
