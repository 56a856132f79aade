// Normalisation along the features of each row: x [n, features], gain and bias [features] -> y [n,
// features]. Both throw Error naming the shapes when they do not fit.
#pragma once

#include "engine/tape.h"

namespace tritgrad {

inline constexpr float kLayerNormEps = 1e-5f;
inline constexpr float kRmsNormEps = 1e-6f;

// y = gain * (x - mean) / sqrt(var + eps) + bias, with the mean and the biased variance of each row
// (Ba, Kiros, Hinton 2016).
Var layer_norm(Tape& tape, const Var& x, Parameter& gain, Parameter& bias);

// y = gain * x / sqrt(mean(x^2) + eps) (Zhang, Sennrich 2019).
Var rms_norm(Tape& tape, const Var& x, Parameter& gain);

}  // namespace tritgrad
