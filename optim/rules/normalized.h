// Normalised gradient: one scalar of state for a whole tensor.
//
//     direction = clip(g / sqrt(S^), -1 / lr .. 1 / lr)      (the clip is the format's: one trit a
//     step) S <- beta S + (1 - beta) mean(g^2)                     S^ = S / (1 - beta^t)
//
// S^ is the one of the step before, so that an update can be fused with the product that makes g;
// the first step only measures. With stochastic rounding on a ternary format of 85 levels (latent8,
// or ternary with threshold 42 and carry) this trains without any per-element moment.
#pragma once

#include <cmath>
#include <limits>

#include "engine/kernel_table.h"
#include "optim/rule.h"

namespace tritgrad {

class Normalized : public Rule {
 public:
  explicit Normalized(const RuleSpec& spec) : beta_(spec.normalizer_beta) {}

  int scalar_count() const override { return 2; }  // S, number of steps in it (exact up to 2^24)

  void begin(std::int64_t, std::span<const float> scalars) override {
    const double bias = -std::expm1(static_cast<double>(scalars[1]) * std::log(beta_));
    const double mean_square = bias > 0.0 ? static_cast<double>(scalars[0]) / bias : 0.0;
    inverse_rms_ = mean_square > 0.0 ? static_cast<float>(1.0 / std::sqrt(mean_square)) : 0.0f;
  }

  double direct(const RuleBlock& b) const override {
    constexpr float kMax = std::numeric_limits<float>::max();
    for (std::int64_t i = 0; i < b.n; ++i) {
      const bool finite = b.grad[i] <= kMax && b.grad[i] >= -kMax;
      b.direction[i] = finite ? b.grad[i] * inverse_rms_ : 0.0f;
    }
    return kernels().sum_of_squares(b.grad, b.n);
  }

  void end(double sum, std::int64_t elements, std::span<float> scalars) override {
    if (!std::isfinite(sum)) return;  // one bad gradient must not poison the state for ever
    const double mean_square = sum / static_cast<double>(elements);
    scalars[0] =
        static_cast<float>(beta_ * static_cast<double>(scalars[0]) + (1.0 - beta_) * mean_square);
    scalars[1] += 1.0f;
  }

 private:
  double beta_;
  float inverse_rms_ = 0.0f;
};

}  // namespace tritgrad
