// ECO (error-compensating optimizer, 2026): error feedback through the momentum, which carries the
// rounding error of a weight.
//
//     W~ = W - lr direction          W = q(W~)          E = W~ - W
//     m <- m + alpha E / gain                            gain = d direction / d m
//
// Without a master copy, the error E of rounding is not lost: it is put where the next steps will
// subtract it again. alpha follows from asking that W + (what m still carries) is the master
// trajectory; with decoupled decay lambda and momentum beta,
//
//     kPublished   alpha = (1 - 1 / beta) / lr
//     kLrAware     alpha = (1 - lr lambda) / lr - (1 - lr' lambda) r / (beta lr')
//     kRescaled    as published, then m <- m lr / lr'
//
// lr' is the rate of the next step and r = gain(t) / gain(t + 1) as far as the step number alone
// decides (Adam's bias correction). For a constant rate all three agree but for the decay. kLrAware
// drops its first term in the very first step, where no error has been carried yet.
//
// The effect of an error that Adam carries depends on its later mean squares too: as they fall, it
// grows. `normalized`, whose gain is 1, carries it as it is.
//
// E is clamped to half a step of a ternary grid, so what would leave the grid does not wind up.
#pragma once

#include <cstdint>
#include <string>

#include "optim/rule.h"

namespace tritgrad {

enum class EcoForm { kOff, kPublished, kLrAware, kRescaled };

struct EcoStep {
  bool skip = false;     // lr = 0 (below 1e-20): the step does nothing at all
  float alpha = 0.0f;    // times E / gain is added to m
  float rescale = 1.0f;  // multiplies m afterwards
};

// Throws Error with the reason if errors cannot be carried: the rule has no momentum that a
// magnitude survives in, or the format keeps its own residual.
void check_eco(const RuleSpec& rule, const FormatSpec& format);

// Returns the weight decay that acts on the weight itself, not through the gradient.
double decoupled_decay(const RuleSpec& rule);

// `t` counts from 1. With next_lr = 0 nothing follows, and the published form is used.
EcoStep eco_step(EcoForm form, const Rule& rule, double decay, double lr, double next_lr,
                 std::int64_t t);

}  // namespace tritgrad
