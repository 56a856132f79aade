// AdamW: adaptive moments with decoupled weight decay (Kingma, Ba 2015; Loshchilov, Hutter 2019).
//
//     m <- beta1 m + (1 - beta1) g           m^ = m / (1 - beta1^t)
//     v <- beta2 v + (1 - beta2) g^2         v^ = v / (1 - beta2^t)
//     direction = m^ / (sqrt(v^) + eps) + weight_decay * master
#pragma once

#include <cmath>

#include "engine/kernel_table.h"
#include "optim/rule.h"

namespace tritgrad {

class Adamw : public Rule {
 public:
  explicit Adamw(const RuleSpec& spec) : spec_(spec) {}

  std::vector<std::string> moment_names() const override { return {"m", "v"}; }
  // The kernel always reads the weight; with weight_decay = 0 it counts for nothing.
  WeightReading weight_reading() const override { return WeightReading::kMaster; }

  void begin(std::int64_t step, std::span<const float>) override {
    // 1 - beta^t without cancellation for beta near 1.
    const double t = static_cast<double>(step);
    const double bias1 = spec_.beta1 > 0.0 ? -std::expm1(t * std::log(spec_.beta1)) : 1.0;
    const double bias2 = spec_.beta2 > 0.0 ? -std::expm1(t * std::log(spec_.beta2)) : 1.0;
    constants_ = {.beta1 = static_cast<float>(spec_.beta1),
                  .beta2 = static_cast<float>(spec_.beta2),
                  .one_minus_beta1 = static_cast<float>(1.0 - spec_.beta1),
                  .one_minus_beta2 = static_cast<float>(1.0 - spec_.beta2),
                  .inverse_bias1 = static_cast<float>(1.0 / bias1),
                  .inverse_bias2 = static_cast<float>(1.0 / bias2),
                  .eps = static_cast<float>(spec_.eps),
                  .weight_decay = static_cast<float>(spec_.weight_decay)};
  }

  double direct(const RuleBlock& b) const override {
    kernels().adamw(b.direction, b.moments[0], b.moments[1], b.grad, b.weight, constants_, b.n);
    return 0.0;
  }

 private:
  RuleSpec spec_;
  AdamwConstants constants_{};
};

}  // namespace tritgrad
