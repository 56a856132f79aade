// Tells when a run cannot train: updates that rounding to nearest loses.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "optim/optimizer.h"

namespace tritgrad {

// Watches the weights (not scales, biases and norms) of one run, epoch by epoch.
class StallWatch {
 public:
  // Looks at the updates since the last call. Returns a warning, once for a run, if a quarter of
  // its steps are done and none of them could move more than a hundredth of some matrix.
  std::string look(Optimizer& optimizer);

  // The largest share of all weights that the updates of one epoch could move, since this process
  // began; absent until updates were watched.
  std::optional<double> movable() const { return movable_; }

 private:
  std::optional<double> movable_;
  std::map<std::string, double> best_;  // movable share by matrix
  bool warned_ = false;
};

}  // namespace tritgrad
