// Sign votes: signSGD (Bernstein et al. 2018), the gradient's sign and nothing else.
//
//     direction = sign(g) + weight_decay * sign(value),   sign(0) = 0, not finite -> 0
//
// On a ternary format, lr * direction is a vote of lr trits against the gradient: it descends. (A
// vote with the gradient's own sign ascends; some published notes have it so.) The format's
// accumulator adds votes up, and its stochastic rounding thins them where lr is below one level.
// The decay is the coupled one: an extra vote towards zero, which makes weights with weak evidence
// zero. Where ranks or parts of a batch vote (data parallel), their votes come counted: the mean of
// signs takes the place of sign(g).
#pragma once

#include <algorithm>
#include <array>

#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "optim/rule.h"

namespace tritgrad {

class Sign : public Rule {
 public:
  explicit Sign(const RuleSpec& spec)
      : decay_(static_cast<float>(spec.weight_decay)), counted_(spec.counted_votes) {}

  WeightReading weight_reading() const override {
    return decay_ > 0.0f ? WeightReading::kValue : WeightReading::kNone;
  }

  GradientForm gradient_form() const override {
    if (decay_ > 0.0f || counted_) return {};
    return {.direction = DirectionForm::kSigns};
  }

  void direct(const RuleBlock& b) const override {
    if (counted_) {
      std::copy_n(b.grad, b.n, b.direction);
    } else {
      kernels().updates.sign(b.direction, b.grad, b.n);
    }
    if (decay_ == 0.0f) return;
    std::array<float, kRuleChunk> pull;
    kernels().updates.sign(pull.data(), b.weight, b.n);
    kernels().reductions.add_scaled(b.direction, pull.data(), decay_, b.n);
  }

 private:
  float decay_;
  bool counted_;
};

}  // namespace tritgrad
