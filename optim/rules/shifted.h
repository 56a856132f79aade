// Shifted gradient: WAGE's update (Wu et al. 2018), without any state.
//
//     direction = g / 2^round(log2(max |g|))       (0 where all of the gradient is 0)
//
// The largest magnitude is that of the parameter's whole gradient in this step, so the largest
// element of a direction lies between sqrt(1/2) and sqrt(2), and the others keep their ratio to it:
// nothing is rounded but by the format. With a rate that is a power of two a step is a shift. A
// gradient that is computed when read is computed twice, once for its largest magnitude.
#pragma once

#include <algorithm>
#include <cmath>

#include "optim/rule.h"

namespace tritgrad {

class Shifted : public Rule {
 public:
  // Returns 2^round(log2(largest)), or 2^-126, whose inverse is a float, where that is more; half
  // of a power is rounded up. 0 has none and gives 2^-126.
  static float power_of_two_near(float largest) {
    constexpr int kLowest = -126;
    int exponent = kLowest;
    // largest = mantissa 2^exponent with a mantissa from 1/2 to 1.
    const float mantissa = std::frexp(largest, &exponent);
    if (double{mantissa} * double{mantissa} < 0.5) --exponent;
    return std::ldexp(1.0f, largest > 0.0f ? std::max(exponent, kLowest) : kLowest);
  }

  bool reads_largest() const override { return true; }
  void begin(const RuleStep& step) override { inverse_ = 1.0f / power_of_two_near(step.largest); }

  void direct(const RuleBlock& b) const override {
    for (std::int64_t i = 0; i < b.n; ++i) b.direction[i] = inverse_ * b.grad[i];
  }

 private:
  float inverse_ = 0.0f;
};

}  // namespace tritgrad
