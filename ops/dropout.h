// Dropout with keyed masks (Srivastava et al. 2014).
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// y = x * mask / (1 - p) of the shape of x, with mask ~ Bernoulli(1 - p) drawn from `key`. It is
// for training alone; at inference the caller leaves the op out. p is used in steps of 1/65536. The
// mask is not stored: backward draws it again. Throws Error unless 0 <= p < 1.
Var dropout(Tape& tape, const Var& x, float p, const RandomKey& key);

}  // namespace tritgrad
