// Normalised gradient: Adam with the second moment of the step before, and without momentum, or
// with one that averages normalised gradients.
//
//     n = g / sqrt(v^)                               (0 where v is 0: the first step only measures)
//     n <- clip(n, -clip_direction, clip_direction)   (0: as it is)
//     v <- beta2 v + (1 - beta2) g^2                  v^ = v / (1 - beta2^(t-1))
//     m <- momentum m + (1 - momentum) n
//     direction = m                                   (n where momentum is 0, which keeps no m)
//
// Momentum after normalisation is LaProp's order (Ziyin, Wang, Ueda 2020), here without its
// correction of the bias: what is in m moves the weight by lr times itself, whatever v becomes
// later. ECO gains by that: the errors that Adam's momentum carries grow as mean squares fall.
//
// v is meant for a format that is far smaller than the weight: one scalar for the tensor (the
// default), or factored into rows and columns. It is that of the step before, so that an update can
// be fused with the product that makes g. With stochastic rounding on a fixed-point ternary format
// (latent8, or ternary with carry) this trains without any per-element moment.
//
// A limit of 2.5 keeps rare gradients, far above their mean square, from flipping trits at once.
// What is averaged in v is the gradient, not what the limit leaves of it.
#pragma once

#include <array>
#include <cmath>

#include "optim/rule.h"
#include "optim/rules/adam.h"

namespace tritgrad {

class Normalized : public Rule, public CarriesTrits {
 public:
  explicit Normalized(const RuleSpec& spec)
      : beta_(spec.beta2), momentum_(spec.momentum), limit_(spec.clip_direction) {}

  std::vector<MomentSpec> moments() const override {
    if (momentum_ > 0.0) return {{"m", false}, {"v", true}};
    return {{"v", true}};
  }
  EcoTerms eco_terms(std::int64_t) const override {
    return {.momentum = momentum_, .gain_is_one = true};
  }

  void begin(const RuleStep& step) override {
    inverse_bias_ = step.t > 1 ? static_cast<float>(1.0 / bias_correction(beta_, step.t - 1)) : 0;
  }

  GradientForm gradient_form() const override {
    if (momentum_ > 0.0 || limit_ > 0.0) return {};  // no multiple of the gradient
    return {DirectionForm::kScaledGradient, beta_, inverse_bias_};
  }

  void direct(const RuleBlock& b) const override {
    if (momentum_ == 0.0) return normalize(b, b.moments[0], b.direction);
    std::array<float, kRuleChunk> normalized;
    normalize(b, b.moments[1], normalized.data());
    kernels().updates.sgd(b.direction, b.moments[0], normalized.data(),
                          static_cast<float>(momentum_), static_cast<float>(1.0 - momentum_), false,
                          b.n);
  }

  std::optional<FormatKind> carried_v() const override { return FormatKind::kScalar; }
  std::int64_t carry_trits(const CarriedTrits& at, float v, const CarryConstants& carry,
                           std::int64_t n) const override {
    const NormalizedConstants constants{.beta = static_cast<float>(beta_),
                                        .one_minus_beta = static_cast<float>(1.0 - beta_),
                                        .inverse_bias = inverse_bias_,
                                        .momentum = static_cast<float>(momentum_),
                                        .fresh = static_cast<float>(1.0 - momentum_),
                                        .limit = static_cast<float>(limit_)};
    return kernels().updates.carry_normalized(at, constants, v, carry, n);
  }

 private:
  void normalize(const RuleBlock& b, float* v, float* out) const {
    kernels().updates.normalized(out, v, b.grad, static_cast<float>(beta_),
                                 static_cast<float>(1.0 - beta_), inverse_bias_, b.n);
    if (limit_ > 0.0) kernels().updates.limit(out, static_cast<float>(limit_), b.n);
  }

  double beta_;
  double momentum_;
  double limit_;
  float inverse_bias_ = 0.0f;
};

}  // namespace tritgrad
