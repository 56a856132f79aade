// Training that ran away: a loss, a gradient or a weight is no longer finite. An error of its own,
// because whoever tries several learning rates goes on where every other error must end the work.
#pragma once

#include "engine/check.h"

namespace tritgrad {

class Diverged : public Error {
 public:
  using Error::Error;
};

}  // namespace tritgrad
