// Lion, evolved sign momentum (Chen et al. 2023).
//
//     direction = sign(beta1 m + (1 - beta1) g) + weight_decay * master,    sign(0) = 0
//     m <- beta2 m + (1 - beta2) g
//
// The magnitude of m is lost in the sign, so no rounding error can be carried in it (ECO).
#pragma once

#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "optim/rule.h"

namespace tritgrad {

class Lion : public Rule, public FusesSplit24 {
 public:
  explicit Lion(const RuleSpec& spec)
      : constants_{.beta1 = static_cast<float>(spec.beta1),
                   .beta2 = static_cast<float>(spec.beta2),
                   .one_minus_beta1 = static_cast<float>(1.0 - spec.beta1),
                   .one_minus_beta2 = static_cast<float>(1.0 - spec.beta2)},
        weight_decay_(static_cast<float>(spec.weight_decay)) {}

  std::vector<MomentSpec> moments() const override { return {{"m", false}}; }
  WeightReading weight_reading() const override {
    return weight_decay_ > 0.0f ? WeightReading::kMaster : WeightReading::kNone;
  }

  void direct(const RuleBlock& b) const override {
    kernels().updates.lion(b.direction, b.moments[0], b.grad, constants_, b.n);
    if (weight_decay_ > 0.0f)
      kernels().reductions.add_scaled(b.direction, b.weight, weight_decay_, b.n);
  }

  bool update_split24(const FlashElements& at, float lr, std::int64_t n) const override {
    return kernels().updates.flash_lion(at, constants_, weight_decay_, lr, n);
  }

 private:
  LionConstants constants_;
  float weight_decay_;
};

}  // namespace tritgrad
