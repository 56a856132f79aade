// Rules a vector at a time, for passes that decode, update and encode at once.
//
// First the moments become what they are after the update, then their direction is asked for, so
// that many moments are on their way while a quotient is waited for. kShowsMoment: what is not
// finite in the first moment is not finite in the direction either. kCouplesDecay: the gradient is
// decayed() before it meets the moments. gain(): d direction / d m, of rules that can carry errors
// (optim/eco.h); kGainIsOne: it is always 1. kWritesV: remember() makes a new v, with or without
// reading the old one (kHasSecondMoment).
#pragma once

#include "engine/kernels/updates.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

struct AdamwLanes {
  explicit AdamwLanes(const AdamwConstants& c)
      : beta1(c.beta1),
        one_minus_beta1(c.one_minus_beta1),
        beta2(c.beta2),
        one_minus_beta2(c.one_minus_beta2),
        inverse_bias1(c.inverse_bias1),
        inverse_bias2(c.inverse_bias2),
        eps(c.eps),
        weight_decay(c.weight_decay) {}

  // m and v become what they are after the update.
  void remember(const F32& g, F32& m, F32& v) const {
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + (one_minus_beta2 * g) * g;
  }
  // The direction of those m and v; `root` becomes the root of v inverse_bias2.
  F32 direction(const F32& m, const F32& v, const F32& master, F32& root) const {
    root = sqrt(v * inverse_bias2);
    const F32 decay = weight_decay * master;
    return m * inverse_bias1 / (root + eps) + decay;
  }

  F32 beta1, one_minus_beta1, beta2, one_minus_beta2, inverse_bias1, inverse_bias2, eps,
      weight_decay;
};

struct AdamwRule {
  static constexpr bool kHasSecondMoment = true;
  static constexpr bool kWritesV = true;
  static constexpr bool kGainIsOne = false;
  static constexpr bool kShowsMoment = true;
  static constexpr bool kCouplesDecay = false;
  explicit AdamwRule(const AdamwConstants& constants) : adamw(constants) {}

  F32 remember(const F32& g, F32& m, F32& v) const {
    adamw.remember(g, m, v);
    return m;
  }
  F32 direction(const F32& m, const F32& v, const F32& w, F32& root) const {
    return adamw.direction(m, v, w, root);
  }
  F32 gain(const F32& root) const { return adamw.inverse_bias1 / (root + adamw.eps); }
  // The factor by which `root` is more than the root of v.
  float root_factor() const { return __builtin_sqrtf(adamw.inverse_bias2.get(0)); }

  AdamwLanes adamw;
};

struct LionRule {
  static constexpr bool kHasSecondMoment = false;
  static constexpr bool kShowsMoment = false;
  static constexpr bool kCouplesDecay = false;
  LionRule(const LionConstants& c, float decay)
      : beta1(c.beta1),
        one_minus_beta1(c.one_minus_beta1),
        beta2(c.beta2),
        one_minus_beta2(c.one_minus_beta2),
        weight_decay(decay) {}

  F32 remember(const F32& g, F32& m, F32&) const {
    const F32 ahead = beta1 * m + one_minus_beta1 * g;
    m = beta2 * m + one_minus_beta2 * g;
    return ahead;
  }
  F32 direction(const F32& ahead, const F32&, const F32& w, F32&) const {
    const U32 one_bits = bits_as<U32>(F32(1.0f));
    const U32 signed_one = (bits_as<U32>(ahead) & U32(0x80000000u)) | one_bits;
    const F32 zero(0.0f);
    const F32 sign = select(ahead == zero, zero, bits_as<F32>(signed_one));
    return sign + weight_decay * w;
  }

  F32 beta1, one_minus_beta1, beta2, one_minus_beta2, weight_decay;
};

template <bool kNesterov, bool kCoupled>
struct SgdRule {
  static constexpr bool kHasSecondMoment = false;
  static constexpr bool kWritesV = false;
  static constexpr bool kGainIsOne = !kNesterov;
  static constexpr bool kShowsMoment = true;
  static constexpr bool kCouplesDecay = kCoupled;
  explicit SgdRule(const SgdConstants& c)
      : momentum(c.momentum), fresh(c.fresh), weight_decay(c.weight_decay) {}

  F32 remember(const F32& g, F32& m, F32&) const {
    m = momentum * m + fresh * g;
    return kNesterov ? g + momentum * m : m;
  }
  F32 direction(const F32& ahead, const F32&, const F32& w, F32&) const {
    return kCoupled ? ahead : ahead + weight_decay * w;
  }
  F32 decayed(const F32& g, const F32& w) const { return g + weight_decay * w; }
  F32 gain(const F32&) const { return momentum; }

  F32 momentum, fresh, weight_decay;
};

// Calls body(SgdRule) with the rule for these constants.
template <typename Body>
auto with_sgd_rule(const SgdConstants& constants, const Body& body) {
  if (constants.nesterov) {
    return constants.coupled ? body(SgdRule<true, true>(constants))
                             : body(SgdRule<true, false>(constants));
  }
  return constants.coupled ? body(SgdRule<false, true>(constants))
                           : body(SgdRule<false, false>(constants));
}

// Of `normalized` with a momentum, where v is one number for all elements: what it becomes is
// written, but never read. kLimits: elements are limited, and NaN is 0.
template <bool kLimits>
struct NormalizedRule {
  static constexpr bool kHasSecondMoment = false;
  static constexpr bool kWritesV = true;
  static constexpr bool kGainIsOne = true;
  static constexpr bool kCouplesDecay = false;
  NormalizedRule(const NormalizedConstants& c, float v)
      : momentum(c.momentum),
        fresh(c.fresh),
        limit(c.limit),
        decayed_v(c.beta * v),
        one_minus_beta(c.one_minus_beta) {
    const float root = __builtin_sqrtf(v * c.inverse_bias);
    inverse = F32(1.0f / root);
    kept = U32(root > 0.0f ? 0xFFFFFFFFu : 0u);
  }

  F32 remember(const F32& g, F32& m, F32& v) const {
    v = decayed_v + (one_minus_beta * g) * g;
    F32 normalized = bits_as<F32>(bits_as<U32>(g * inverse) & kept);
    if constexpr (kLimits) {
      const F32 number = select(normalized == normalized, normalized, F32(0.0f));
      normalized = clamp(number, -limit, limit);
    }
    m = momentum * m + fresh * normalized;
    return m;
  }
  F32 direction(const F32& m, const F32&, const F32&, F32&) const { return m; }

  F32 momentum, fresh, limit, decayed_v, one_minus_beta, inverse;
  U32 kept;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
