// y = a + b, as at the end of a residual branch (He et al. 2016).
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// a, b and y have the same shape; both get the gradient of y. Throws Error naming both shapes when
// they differ.
Var add(Tape& tape, const Var& a, const Var& b);

}  // namespace tritgrad
