// The gated unit of a transformer's feed-forward layer.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// y = silu(gate) * up, element by element, with silu(x) = x / (1 + e^-x) (Shazeer 2020, without the
// projections). Relatively within 6 units of 2^-24; NaN stays NaN. All have the same shape; throws
// Error naming both shapes when those of gate and up differ.
Var swiglu(Tape& tape, const Var& gate, const Var& up);

}  // namespace tritgrad
