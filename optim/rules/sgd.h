// Stochastic gradient descent with momentum.
//
//     m <- momentum m + g          direction = m            (g itself without momentum)
//                                  direction = g + momentum m with Nesterov's look-ahead
// plus weight_decay * master (decoupled). No dampening. Without momentum no moment exists.
#pragma once

#include "optim/rule.h"

namespace tritgrad {

class Sgd : public Rule {
 public:
  explicit Sgd(const RuleSpec& spec)
      : momentum_(static_cast<float>(spec.momentum)),
        nesterov_(spec.nesterov),
        weight_decay_(static_cast<float>(spec.weight_decay)) {}

  std::vector<std::string> moment_names() const override {
    return momentum_ > 0.0f ? std::vector<std::string>{"m"} : std::vector<std::string>{};
  }
  WeightReading weight_reading() const override {
    return weight_decay_ > 0.0f ? WeightReading::kMaster : WeightReading::kNone;
  }

  double direct(const RuleBlock& b) const override {
    for (std::int64_t i = 0; i < b.n; ++i) {
      float direction = b.grad[i];
      if (momentum_ > 0.0f) {
        float& m = b.moments[0][i];
        m = momentum_ * m + b.grad[i];
        direction = nesterov_ ? b.grad[i] + momentum_ * m : m;
      }
      if (weight_decay_ > 0.0f) direction += weight_decay_ * b.weight[i];
      b.direction[i] = direction;
    }
    return 0.0;
  }

 private:
  float momentum_;
  bool nesterov_;
  float weight_decay_;
};

}  // namespace tritgrad
