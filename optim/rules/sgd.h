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

#include <algorithm>
#include <array>

#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "optim/rule.h"

namespace tritgrad {

class Sgd : public Rule, public FusesSplit24, public CarriesTrits {
 public:
  explicit Sgd(const RuleSpec& spec)
      : exact_momentum_(spec.momentum),
        momentum_(static_cast<float>(spec.momentum)),
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
  EcoTerms eco_terms(std::int64_t) const override {
    return {.momentum = exact_momentum_, .gain_is_one = !nesterov_};
  }

  void direct(const RuleBlock& b) const override {
    const float* grad = b.grad;
    std::array<float, kRuleChunk> decayed;
    if (coupled_ && weight_decay_ > 0.0f) {
      std::copy_n(b.grad, b.n, decayed.data());
      kernels().reductions.add_scaled(decayed.data(), b.weight, weight_decay_, b.n);
      grad = decayed.data();
    }
    if (momentum_ > 0.0f) {
      kernels().updates.sgd(b.direction, b.moments[0], grad, momentum_, fresh_, nesterov_, b.n);
    } else {
      std::copy_n(grad, b.n, b.direction);
    }
    if (!coupled_ && weight_decay_ > 0.0f) {
      kernels().reductions.add_scaled(b.direction, b.weight, weight_decay_, b.n);
    }
    if (b.gain != nullptr) std::fill_n(b.gain, b.n, momentum_);
  }

  bool update_split24(const FlashElements& at, float lr, std::int64_t n) const override {
    return kernels().updates.flash_sgd(at, constants(), lr, n);
  }

  std::optional<FormatKind> carried_v() const override { return FormatKind::kFp32; }
  std::int64_t carry_trits(const CarriedTrits& at, float, const CarryConstants& carry,
                           std::int64_t n) const override {
    return kernels().updates.carry_sgd(at, constants(), carry, n);
  }

 private:
  SgdConstants constants() const {
    return {.momentum = momentum_,
            .fresh = fresh_,
            .nesterov = nesterov_,
            .weight_decay = weight_decay_,
            .coupled = coupled_ && weight_decay_ > 0.0f};
  }

  double exact_momentum_;
  float momentum_;
  float fresh_;
  bool nesterov_;
  bool coupled_;
  float weight_decay_;
};

}  // namespace tritgrad
