// The options of data and of runs as a JSON object, whose keys are those of the command line:
// "--val" is "val",
// "--micro-batches" is "micro_batches".
#pragma once

#include <string>

#include "models/training/train.h"

namespace tritgrad {

// Reads the options of data: "data" and how a table is understood. Throws Error for unknown keys,
// with the nearest, and for values that the command line would refuse.
TrainSpec data_spec_from_json(const std::string& text);

// Reads the options of a run: those of training, "lr", "compute", "save", "save_every", "resume"
// and "stop_after".
TrainOptions run_spec_from_json(const std::string& text);

}  // namespace tritgrad
