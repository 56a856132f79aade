// Adam and AdamW: adaptive moments (Kingma, Ba 2015; Loshchilov, Hutter 2019).
//
//     m <- beta1 m + (1 - beta1) g           m^ = m / (1 - beta1^t)
//     v <- beta2 v + (1 - beta2) g^2         v^ = v / (1 - beta2^t)
//     direction = m^ / (sqrt(v^) + eps)
//
// adam: weight decay is coupled, g <- g + weight_decay * master; adamw: decoupled, direction +=
// weight_decay * master.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "optim/rule.h"

namespace tritgrad {

// Returns 1 - beta^t without cancellation for beta near 1.
inline double bias_correction(double beta, std::int64_t t) {
  return beta > 0.0 ? -std::expm1(static_cast<double>(t) * std::log(beta)) : 1.0;
}

class Adam : public Rule, public FusesSplit24, public CarriesTrits, public FreezesVariance {
 public:
  explicit Adam(const RuleSpec& spec) : spec_(spec) {}

  std::vector<MomentSpec> moments() const override { return {{"m", false}, {"v", true}}; }
  WeightReading weight_reading() const override {
    return spec_.weight_decay > 0.0 ? WeightReading::kMaster : WeightReading::kNone;
  }
  EcoTerms eco_terms(std::int64_t t) const override {
    return {.momentum = spec_.beta1,
            .gain_ratio = bias_correction(spec_.beta1, t) / bias_correction(spec_.beta1, t + 1)};
  }

  void freeze_variance(std::int64_t t) override { frozen_at_ = t; }

  void begin(const RuleStep& step) override {
    const bool frozen = frozen_at_ > 0;
    constants_ = {.beta1 = static_cast<float>(spec_.beta1),
                  .beta2 = static_cast<float>(spec_.beta2),
                  .one_minus_beta1 = static_cast<float>(1.0 - spec_.beta1),
                  .one_minus_beta2 = static_cast<float>(1.0 - spec_.beta2),
                  .inverse_bias1 = static_cast<float>(1.0 / bias_correction(spec_.beta1, step.t)),
                  .inverse_bias2 = static_cast<float>(
                      1.0 / bias_correction(spec_.beta2, frozen ? frozen_at_ : step.t)),
                  .eps = static_cast<float>(spec_.eps),
                  .weight_decay = coupled() ? 0.0f : static_cast<float>(spec_.weight_decay)};
    if (!frozen) return;
    constants_.beta1 = constants_.one_minus_beta2 = 0.0f;
    constants_.beta2 = constants_.one_minus_beta1 = 1.0f;
  }

  void direct(const RuleBlock& b) const override {
    const float* grad = b.grad;
    std::array<float, kRuleChunk> decayed;
    if (coupled()) {
      std::copy_n(b.grad, b.n, decayed.data());
      kernels().reductions.add_scaled(decayed.data(), b.weight,
                                      static_cast<float>(spec_.weight_decay), b.n);
      grad = decayed.data();
    }
    // Without decay the weight counts for nothing, but the kernel reads something finite.
    const float* weight = weight_reading() == WeightReading::kNone ? grad : b.weight;
    kernels().updates.adamw(b.direction, b.moments[0], b.moments[1], grad, weight, constants_, b.n);
    if (b.gain == nullptr) return;
    kernels().updates.adam_gain(b.gain, b.moments[1], constants_.inverse_bias1,
                                constants_.inverse_bias2, constants_.eps, b.n);
  }

  bool update_split24(const FlashElements& at, float lr, std::int64_t n) const override {
    return !coupled() && at.v != nullptr && kernels().updates.flash_adamw(at, constants_, lr, n);
  }

  std::optional<FormatKind> carried_v() const override {
    if (coupled()) return std::nullopt;
    return FormatKind::kFp32;
  }
  std::int64_t carry_trits(const CarriedTrits& at, float, const CarryConstants& carry,
                           std::int64_t n) const override {
    return kernels().updates.carry_adamw(at, constants_, carry, n);
  }

 private:
  bool coupled() const { return spec_.kind == RuleKind::kAdam && spec_.weight_decay > 0.0; }

  RuleSpec spec_;
  AdamwConstants constants_{};
  std::int64_t frozen_at_ = 0;  // 0: never
};

}  // namespace tritgrad
