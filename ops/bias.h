// y = x + b.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// x [n, features], bias [features] in fp32 -> y [n, features]. db = column sums of dy.
Var add_bias(Tape& tape, const Var& x, Parameter& bias);

}  // namespace tritgrad
