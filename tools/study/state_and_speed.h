// What Adam and MicroAdam cost: bytes of state and seconds of a step by number of parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/recipes/recipe.h"

namespace tritgrad {

// What Interrupted says of a study: files are written when all of it is known.
inline constexpr const char* kNothingCameOfIt = "nothing came of the study";

struct CostPoint {
  std::int64_t parameters = 0;
  std::string rule;               // "Adam", "MicroAdam"
  std::int64_t state_bytes = 0;   // by formula, Optimizer::state_bytes
  std::int64_t ledger_bytes = 0;  // by the ledger: what making the optimizer booked as moments
  double seconds_per_step = 0.0;  // median of the samples
  double lower_quartile = 0.0, upper_quartile = 0.0;
  int samples = 0;

  double bytes_per_parameter() const {
    return static_cast<double>(state_bytes) / static_cast<double>(parameters);
  }
};

// One matrix of each size, as square as can be; both rules take the same gradients in turn, first
// until MicroAdam's window is full, then `samples` times against the clock. A sample of a small
// matrix is the mean of many steps. Throws Interrupted after a SIGINT.
std::vector<CostPoint> measure_costs(const std::vector<std::int64_t>& sizes, int samples);

}  // namespace tritgrad
