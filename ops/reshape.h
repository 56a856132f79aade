// The same numbers in another shape: the pixels of an image as one row.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// y has the numbers of x in their order, and in the memory of x, which then is that of y alone, and
// while the tape records stays so until its reset. Throws Error naming both shapes when they have
// different numbers of elements.
Var reshape(Tape& tape, const Var& x, const Shape& shape);

}  // namespace tritgrad
