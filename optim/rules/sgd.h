// Stochastic gradient descent with momentum.
//
//     m <- momentum m + (1 - dampening) g
//     direction = m                    (g itself without momentum)
//     direction = g + momentum m       with Nesterov's look-ahead
//
// sgd: weight decay is coupled, g <- g + weight_decay * master. sgdw: decoupled, direction +=
// weight_decay * master (Loshchilov, Hutter 2019). dampening = momentum makes m a moving average
// that begins at zero (PyTorch begins m with the whole first gradient instead).
// Without momentum no moment exists.
#pragma once

#include "optim/rule.h"

namespace tritgrad {

class Sgd : public Rule {
 public:
  explicit Sgd(const RuleSpec& spec)
      : momentum_(static_cast<float>(spec.momentum)),
        fresh_(static_cast<float>(1.0 - spec.dampening)),
        nesterov_(spec.nesterov),
        coupled_(spec.kind == RuleKind::kSgd),
        weight_decay_(static_cast<float>(spec.weight_decay)) {}

  std::vector<MomentSpec> moments() const override {
    return momentum_ > 0.0f ? std::vector<MomentSpec>{{"m", false}} : std::vector<MomentSpec>{};
  }
  WeightReading weight_reading() const override {
    return weight_decay_ > 0.0f ? WeightReading::kMaster : WeightReading::kNone;
  }
  double momentum() const override { return static_cast<double>(momentum_); }

  void direct(const RuleBlock& b) const override {
    for (std::int64_t i = 0; i < b.n; ++i) {
      const float decay = weight_decay_ > 0.0f ? weight_decay_ * b.weight[i] : 0.0f;
      const float g = coupled_ ? b.grad[i] + decay : b.grad[i];
      float direction = g;
      if (momentum_ > 0.0f) {
        float& m = b.moments[0][i];
        m = momentum_ * m + fresh_ * g;
        direction = nesterov_ ? g + momentum_ * m : m;
      }
      b.direction[i] = coupled_ ? direction : direction + decay;
    }
    if (b.gain != nullptr) std::fill_n(b.gain, b.n, nesterov_ ? momentum_ : 1.0f);
  }

 private:
  float momentum_;
  float fresh_;
  bool nesterov_;
  bool coupled_;
  float weight_decay_;
};

}  // namespace tritgrad
