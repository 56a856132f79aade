// Tells when a run cannot train: updates that rounding loses, and learning rates of 0.
#pragma once

#include <optional>
#include <string>

#include "optim/optimizer.h"

namespace tritgrad {

// Watches the weights of one run, epoch by epoch; of a matrix of more than 65536, a sample
// (ReachWatch). A resumed run is not judged: what its first part moved is not known any more.
class StallWatch {
 public:
  explicit StallWatch(bool resumed) : resumed_(resumed) {}

  // Returns a warning, once for a run, if a quarter of its steps are done and the watched updates
  // were large enough to move next to none of the elements of some matrix (kStalledShare), or if
  // the learning rate of a matrix is 0 before any schedule.
  std::string look(const Optimizer& optimizer, const ParameterStore& store);

  // Of the weights that had updates, the share that some watched one was large enough to move; of a
  // matrix whose updates are carried by chance or ECO all or none; 0 where the learning rate is 0.
  std::optional<double> movable(const Optimizer& optimizer, const ParameterStore& store) const;

 private:
  bool resumed_;
  bool warned_ = false;
};

}  // namespace tritgrad
