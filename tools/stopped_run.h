// Runs that end before their last step: what is left of them, and how they go on.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/interrupt.h"
#include "tools/train.h"

namespace tritgrad {

// Throws Error when --stop-after names a step that a resumed run has done already.
void check_stop(const TrainOptions& options, std::int64_t steps_done);

// "nothing was saved", or the command to go on with.
std::string what_was_saved(const TrainOptions& options);

// After step `done` of `total`.
Interrupted interruption(const TrainOptions& options, std::int64_t done, std::int64_t total);

// Throws Interrupted after a SIGINT: a run of one step is over before it looks, so of many such
// runs none would ever be ended.
void begin_unless_interrupted(const TrainOptions& options);

}  // namespace tritgrad
