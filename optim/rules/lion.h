// Lion, evolved sign momentum (Chen et al. 2023).
//
//     direction = sign(beta1 m + (1 - beta1) g) + weight_decay * master,    sign(0) = 0
//     m <- beta2 m + (1 - beta2) g
//
// The magnitude of m is lost in the sign, so no rounding error can be carried in it (ECO).
#pragma once

#include "optim/rule.h"

namespace tritgrad {

class Lion : public Rule {
 public:
  explicit Lion(const RuleSpec& spec)
      : beta1_(static_cast<float>(spec.beta1)),
        beta2_(static_cast<float>(spec.beta2)),
        fresh1_(static_cast<float>(1.0 - spec.beta1)),
        fresh2_(static_cast<float>(1.0 - spec.beta2)),
        weight_decay_(static_cast<float>(spec.weight_decay)) {}

  std::vector<MomentSpec> moments() const override { return {{"m", false}}; }
  WeightReading weight_reading() const override {
    return weight_decay_ > 0.0f ? WeightReading::kMaster : WeightReading::kNone;
  }

  void direct(const RuleBlock& b) const override {
    float* m = b.moments[0];
    for (std::int64_t i = 0; i < b.n; ++i) {
      const float ahead = beta1_ * m[i] + fresh1_ * b.grad[i];
      b.direction[i] = static_cast<float>((ahead > 0.0f) - (ahead < 0.0f));
      m[i] = beta2_ * m[i] + fresh2_ * b.grad[i];
    }
    if (weight_decay_ > 0.0f) {
      for (std::int64_t i = 0; i < b.n; ++i) b.direction[i] += weight_decay_ * b.weight[i];
    }
  }

 private:
  float beta1_, beta2_;
  float fresh1_, fresh2_;
  float weight_decay_;
};

}  // namespace tritgrad
