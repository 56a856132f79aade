// Whether a run is as long as the bands of its recipe need it: they are trained one after the
// other, each for its share of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/parameter.h"
#include "tools/saved_run.h"

namespace tritgrad {

// Throws Error when a resumed run has bands and another length than it began with.
void check_length(const TrainOptions& options, const Recipe& recipe,
                  const std::optional<SavedRun>& saved);

// A warning, or nothing, about rows that no step of a run from the start will train.
std::string rows_left_out(std::int64_t steps, const ParameterStore& parameters);

}  // namespace tritgrad
