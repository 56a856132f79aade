// Dropout with keyed masks.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// y = x * mask / (1 - p), mask ~ Bernoulli(1 - p) drawn from `key`, 0 <= p < 1 (training only; at
// inference the caller leaves the op out). p is used in steps of 1/65536. The mask is not stored:
// backward draws it again.
Var dropout(Tape& tape, const Var& x, float p, const RandomKey& key);

}  // namespace tritgrad
