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

#include <cmath>

#include "optim/rule.h"
#include "optim/rules/adam.h"

namespace tritgrad {

class Normalized : public Rule {
 public:
  explicit Normalized(const RuleSpec& spec) : beta_(spec.beta2) {}

  std::vector<MomentSpec> moments() const override { return {{"v", true}}; }

  void begin(const RuleStep& step) override {
    inverse_bias_ = step.t > 1 ? static_cast<float>(1.0 / bias_correction(beta_, step.t - 1)) : 0;
  }

  bool scales_gradient() const override { return true; }
  float gradient_factor(float v) const override {
    const float root = std::sqrt(v * inverse_bias_);
    return root > 0.0f ? 1.0f / root : 0.0f;
  }
  double next_moments(float v, double squares, std::int64_t n) const override {
    return beta_ * double{v} * static_cast<double>(n) + (1.0 - beta_) * squares;
  }

  void direct(const RuleBlock& b) const override {
    kernels().normalized(b.direction, b.moments[0], b.grad, static_cast<float>(beta_),
                         static_cast<float>(1.0 - beta_), inverse_bias_, b.n);
  }

 private:
  double beta_;
  float inverse_bias_ = 0.0f;
};

}  // namespace tritgrad
