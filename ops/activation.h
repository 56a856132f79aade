// Elementwise activations: y has the shape of x, which may be any. They throw nothing.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

// y = max(x, 0); the derivative at 0 is 0. NaN stays NaN: a broken network must not look healthy
// (Nair, Hinton 2010).
Var relu(Tape& tape, const Var& x);

// y = max(x, 0)^2, the activation of BitNet b1.58 2B4T. NaN stays NaN.
Var squared_relu(Tape& tape, const Var& x);

// y = tanh(x), within 3.5 units of 2^-24. NaN stays NaN.
Var tanh(Tape& tape, const Var& x);

}  // namespace tritgrad
