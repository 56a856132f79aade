// Batch normalisation over the rows of a batch (Ioffe, Szegedy 2015).
#pragma once

#include "engine/tape.h"

namespace tritgrad {

struct BatchNormParameters {
  Parameter* gain;          // [features], kNorm
  Parameter* bias;          // [features], kNorm
  Parameter* running_mean;  // [features], kStatistic, fp32
  Parameter* running_var;   // [features], kStatistic, fp32; unbiased
};

inline constexpr float kBatchNormEps = 1e-5f;

// The op of training: x [n, features] with n >= 2 -> y [n, features] = gain * (x - mean) / sqrt(var
// + eps) + bias, with the batch's own mean and biased variance of each column; the running
// statistics are updated. Throws Error when shapes do not fit, for running statistics that are not
// in fp32, and for fewer rows.
// Rectify::kYes: y = max(0, that), with no memory for what lies between.
enum class Rectify { kNo, kYes };
Var batch_norm(Tape& tape, const Var& x, const BatchNormParameters& parameters,
               Rectify rectify = Rectify::kNo);

// The op of inference takes the running statistics; it has no gradient, and n may be anything.
// While the tape records nothing, y takes over the memory of x.
Var batch_norm_inference(Tape& tape, const Var& x, const BatchNormParameters& parameters,
                         Rectify rectify = Rectify::kNo);

}  // namespace tritgrad
