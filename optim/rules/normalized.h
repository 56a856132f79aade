// Normalised gradient: Adam without momentum and with the second moment of the step before.
//
//     direction = g / sqrt(v^)                       (0 where v is 0: the first step only measures)
//     v <- beta2 v + (1 - beta2) g^2                  v^ = v / (1 - beta2^(t-1))
//
// v is meant for a format that is far smaller than the weight: one scalar for the tensor (the
// default), or factored into rows and columns. It is that of the step before, so that an update can
// be fused with the product that makes g. With stochastic rounding on a fixed-point ternary format
// (latent8, or ternary with carry) this trains without any per-element moment.
#pragma once

#include "optim/rule.h"
#include "optim/rules/adam.h"

namespace tritgrad {

class Normalized : public Rule {
 public:
  explicit Normalized(const RuleSpec& spec) : beta_(spec.beta2) {}

  std::vector<MomentSpec> moments() const override { return {{"v", true}}; }

  bool takes_one_number() const override { return true; }

  void begin(const RuleStep& step) override {
    inverse_bias_ = step.t > 1 ? static_cast<float>(1.0 / bias_correction(beta_, step.t - 1)) : 0;
  }

  void direct(const RuleBlock& b) const override {
    const float beta = static_cast<float>(beta_), fresh = static_cast<float>(1.0 - beta_);
    if (b.sums[0] != nullptr) {
      *b.sums[0] = kernels().normalized_by_one(b.direction, *b.moments[0], b.grad, beta, fresh,
                                               inverse_bias_, b.n);
    } else {
      kernels().normalized(b.direction, b.moments[0], b.grad, beta, fresh, inverse_bias_, b.n);
    }
  }

 private:
  double beta_;
  float inverse_bias_ = 0.0f;
};

}  // namespace tritgrad
