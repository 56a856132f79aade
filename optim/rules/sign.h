// Sign votes: signSGD (Bernstein et al. 2018), the gradient's sign and nothing else.
//
//     direction = sign(g) + weight_decay * sign(value),   sign(0) = 0, not finite -> 0
//
// On a ternary format, lr * direction is a vote of lr trits against the gradient: it descends. (A
// vote with the gradient's own sign ascends; some published notes have it so.) The format's
// accumulator adds votes up, and its stochastic rounding thins them where lr is below one level.
// The decay is the coupled one: an extra vote towards zero, which makes weights with weak evidence
// zero.
#pragma once

#include <limits>

#include "optim/rule.h"

namespace tritgrad {

class Sign : public Rule {
 public:
  explicit Sign(const RuleSpec& spec) : decay_(static_cast<float>(spec.weight_decay)) {}

  WeightReading weight_reading() const override {
    return decay_ > 0.0f ? WeightReading::kValue : WeightReading::kNone;
  }

  void direct(const RuleBlock& b) const override {
    for (std::int64_t i = 0; i < b.n; ++i) b.direction[i] = vote(b.grad[i]);
    if (decay_ > 0.0f) {
      for (std::int64_t i = 0; i < b.n; ++i) b.direction[i] += decay_ * vote(b.weight[i]);
    }
  }

 private:
  // Comparisons with NaN are false, so NaN gives 0 as infinities do.
  static float vote(float x) {
    constexpr float kMax = std::numeric_limits<float>::max();
    return static_cast<float>((x > 0.0f && x <= kMax) - (x < 0.0f && x >= -kMax));
  }

  float decay_;
};

}  // namespace tritgrad
