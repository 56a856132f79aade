// Whole training steps of a network on made-up data, by phase.
#pragma once

#include <memory>
#include <string>

#include "tools/bench/ceilings.h"

namespace tritgrad {

// Throws Error for what is no network, or one whose sizes are not all given.
void check_step_model(const std::string& model);

// Measures one kind of step: every round makes a network, warms it up and steps it. Throws Error
// when the network cannot be made; allocates nothing large before it measures.
std::unique_ptr<Measurement> step_measurement(const std::string& recipe, const std::string& model,
                                              std::int64_t batch);

}  // namespace tritgrad
