// y = x + b.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// x [n, features], bias [features] in fp32 -> y [n, features]; db is the sums of dy down the
// columns. Throws Error naming both shapes when they do not fit.
Var add_bias(Tape& tape, const Var& x, Parameter& bias);

}  // namespace tritgrad
