// Bare trits whose rounding errors are carried on in the momentum (optim/eco.h): the step alone,
// and whole updates of a block in one pass, from decoding over the rule to encoding.
#pragma once

#include <cstring>

#include "engine/formats/format.h"
#include "ops/kernels/codecs/codecs-inl.h"
#include "ops/kernels/codecs/lowbit-inl.h"
#include "ops/kernels/layers/sums-inl.h"
#include "ops/kernels/targets.h"
#include "ops/kernels/updates/rule_lanes-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// A vector of trits against a direction: the new ones, whose rounding errors m takes.
struct CarryLanes {
  explicit CarryLanes(const CarryConstants& c) : lr(c.lr), alpha(c.alpha), rescale(c.rescale) {}

  // divided(error): what of an error m takes.
  template <typename Divided>
  [[gnu::always_inline]] I32 operator()(const I32& trit, F32& m, const F32& direction,
                                        const std::uint16_t* noise, const Divided& divided) const {
    const F32 exact = to_float(trit) - lr * direction;
    const F32 wanted = clamp(select(exact == exact, exact, F32(0.0f)), -most, most);
    const I32 stored = clamp(round_small(wanted, noise), I32(-1), I32(1));
    m = rescale * (m + divided(alpha * (wanted - to_float(stored))));
    return stored;
  }

  F32 lr, alpha, rescale, most = F32(1.5f);
};

std::int64_t carry_trits(std::int8_t* trits, float* momentum, const float* direction,
                         const float* gain, const CarryConstants& constants,
                         const std::uint16_t* noise, std::int64_t n) {
  constexpr std::int64_t kStep = kLanes<F32>, kBytes = kLanes<I8>;
  const CarryLanes lanes(constants);
  I32 changed(0);
  // Moves a vector of elements from i on; returns its trits.
  const auto carry = [&](std::int64_t i) __attribute__((always_inline)) {
    const I32 trit = read_i32(trits + i);
    F32 m = read<F32>(momentum + i);
    const I32 stored = lanes(
        trit, m, read<F32>(direction + i), noise == nullptr ? nullptr : noise + i,
        [&](const F32& error) { return gain == nullptr ? error : error / read<F32>(gain + i); });
    changed += one_if(stored != trit);
    write(momentum + i, m);
    return stored;
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const I32 a = carry(i), b = carry(i + kStep);
    write(trits + i, narrow(a, b, carry(i + 2 * kStep), carry(i + 3 * kStep)));
  }
  std::int32_t numbers[kStep];
  for (; i + kStep <= n; i += kStep) {
    write(numbers, carry(i));
    for (std::int64_t lane = 0; lane < kStep; ++lane) {
      trits[i + lane] = static_cast<std::int8_t>(numbers[lane]);
    }
  }
  std::int64_t count = reference::kKernels.updates.carry_trits(
      trits + i, momentum + i, direction + i, gain == nullptr ? nullptr : gain + i, constants,
      noise == nullptr ? nullptr : noise + i, n - i);
  write(numbers, changed);
  for (const std::int32_t number : numbers) count += number;
  return count;
}

// ---- whole updates of a block ------------------------------------------------------------------

// What a block becomes, with room for whole steps of the pass.
struct CarryScratch {
  static constexpr std::int64_t kRoom = kBlock + kLanes<I8>;
  alignas(kAlignment) std::int8_t trits[kRoom], moved[kRoom];
  alignas(kAlignment) std::uint16_t noise[kRoom];
  alignas(kAlignment) float m[kRoom], v[kRoom];
};

// First moments where they lie: fp32 numbers, or int8 codes.
struct Fp32Moment {
  explicit Fp32Moment(const CarriedTrits& at) : numbers(at.m) {}
  F32 at(std::int64_t i) const { return read<F32>(numbers + i); }

  const float* numbers;
};
struct Int8Moment {
  explicit Int8Moment(const CarriedTrits& at) : codes(at.m_codes), scales(at.m_scales) {}
  F32 at(std::int64_t i) const {
    const F32 scale(float_of_bf16(scales[i / kCodesPerScale]));
    return to_float(max(read_i32(codes + i), I32(-127))) * scale;
  }

  const std::int8_t* codes;
  const std::uint16_t* scales;
};

// Moves n elements, whole steps, the first of which is number `first` of the scratch.
template <bool kNoise, typename Moment, typename Rule>
void carry_steps(CarryScratch& to, std::int64_t first, const CarriedTrits& at, const Rule& rule,
                 const CarryLanes& lanes, std::int64_t n) {
  constexpr std::int64_t kStep = kLanes<F32>, kBytes = kLanes<I8>;
  const Moment moment(at);
  for (std::int64_t i = 0; i < n; i += kBytes) {
    I32 stored[4];
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      const std::int64_t from = i + k * kStep, j = first + from;
      const I32 trit = read_i32(to.trits + j);
      const F32 w = to_float(trit);
      F32 g = read<F32>(at.grad + from), m = moment.at(from), v, root;
      if constexpr (Rule::kHasSecondMoment) v = read<F32>(at.v + from);
      if constexpr (Rule::kCouplesDecay) g = rule.decayed(g, w);
      const F32 ahead = rule.remember(g, m, v);
      const F32 direction = rule.direction(ahead, v, w, root);
      stored[k] = lanes(trit, m, direction, kNoise ? to.noise + j : nullptr, [&](const F32& error) {
        if constexpr (Rule::kGainIsOne) {
          return error;
        } else {
          return error / rule.gain(root);
        }
      });
      write(to.m + j, m);
      if constexpr (Rule::kWritesV) write(to.v + j, v);
    }
    write(to.moved + first + i, narrow(stored[0], stored[1], stored[2], stored[3]));
  }
}

// Copies of elements that do not fill a step, and of their scales: a step reads those of all its
// elements.
struct CarryRest {
  static constexpr std::int64_t kRoom = kLanes<I8>;

  CarryRest(const CarriedTrits& at, std::int64_t done, std::int64_t n) {
    const auto copy = [=]<typename T>(T(&to)[kRoom], const T* from) {
      if (from != nullptr) std::memcpy(to, from + done, static_cast<std::size_t>(n) * sizeof(T));
    };
    copy(grad, at.grad);
    copy(m, at.m);
    copy(v, at.v);
    copy(codes, at.m_codes);
    if (at.m_scales == nullptr) return;
    const std::int64_t groups = (n + kCodesPerScale - 1) / kCodesPerScale;
    std::copy_n(at.m_scales + done / kCodesPerScale, groups, scales);
  }
  CarriedTrits elements(const CarriedTrits& at) {
    CarriedTrits rest = at;
    rest.grad = grad;
    rest.m = m;
    rest.v = v;
    rest.m_codes = codes;
    rest.m_scales = scales;
    return rest;
  }

  float grad[kRoom] = {}, m[kRoom] = {}, v[kRoom] = {};
  std::int8_t codes[kRoom] = {};
  std::uint16_t scales[kRoom / kCodesPerScale + 1] = {};
};

template <bool kNoise, typename Moment, typename Rule>
void carry_all(CarryScratch& to, const CarriedTrits& at, const Rule& rule, const CarryLanes& lanes,
               std::int64_t n) {
  const std::int64_t done = n / kLanes<I8> * kLanes<I8>;
  carry_steps<kNoise, Moment>(to, 0, at, rule, lanes, done);
  if (done == n) return;
  CarryRest rest(at, done, n - done);
  carry_steps<kNoise, Moment>(to, done, rest.elements(at), rule, lanes, kLanes<I8>);
}

std::int64_t count_changes(const std::int8_t* before, const std::int8_t* after, std::int64_t n) {
  std::int64_t changes = 0, i = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) {
    changes += count(read<I8>(before + i) != read<I8>(after + i));
  }
  for (; i < n; ++i) changes += before[i] != after[i];
  return changes;
}

// Encodes a first moment, its noise drawn while its scales are on their way.
void store_codes(const CarriedTrits& at, CarryScratch& scratch, std::int64_t n) {
  const bool by_chance = at.m_key != nullptr;
  const auto draw = [&] {
    if (by_chance) random_u16(scratch.noise, n, *at.m_key, at.first_noise);
    return by_chance ? scratch.noise : nullptr;
  };
  constexpr int kMostCode = 127;
  if (n % kCodesPerScale == 0 && n / kCodesPerScale <= wide::SomeGroups::kMost) {
    const wide::SomeGroups groups(at.m_scales, scratch.m, kMostCode, by_chance, n / kCodesPerScale);
    return groups.encode(at.m_codes, draw());
  }
  wide::encode_groups(at.m_codes, at.m_scales, scratch.m, kMostCode, draw(), n);
}

template <typename Rule>
std::int64_t carry_block(const CarriedTrits& at, const Rule& rule, const CarryConstants& constants,
                         std::int64_t n) {
  CarryScratch scratch;
  read_ahead(at.grad, n);
  const CarryLanes lanes(constants);
  decode_trits(scratch.trits, 0, at.trits, 0, 1, n);
  const bool by_chance = at.trit_key != nullptr;
  if (by_chance) random_u16(scratch.noise, n, *at.trit_key, at.first_noise);
  if (at.m == nullptr) {
    by_chance ? carry_all<true, Int8Moment>(scratch, at, rule, lanes, n)
              : carry_all<false, Int8Moment>(scratch, at, rule, lanes, n);
    store_codes(at, scratch, n);
  } else {
    by_chance ? carry_all<true, Fp32Moment>(scratch, at, rule, lanes, n)
              : carry_all<false, Fp32Moment>(scratch, at, rule, lanes, n);
    std::memcpy(at.m, scratch.m, static_cast<std::size_t>(n) * sizeof(float));
  }
  if constexpr (Rule::kHasSecondMoment) {
    std::memcpy(at.v, scratch.v, static_cast<std::size_t>(n) * sizeof(float));
  } else if constexpr (Rule::kWritesV) {
    *at.v_sum = sum(scratch.v, n);
  }
  const std::int64_t changes = count_changes(scratch.trits, scratch.moved, n);
  if (changes > 0) encode_trits(at.trits, scratch.moved, n);
  return changes;
}

std::int64_t carry_normalized(const CarriedTrits& at, const NormalizedConstants& constants, float v,
                              const CarryConstants& carry, std::int64_t n) {
  return constants.limit > 0.0f ? carry_block(at, NormalizedRule<true>(constants, v), carry, n)
                                : carry_block(at, NormalizedRule<false>(constants, v), carry, n);
}

std::int64_t carry_sgd(const CarriedTrits& at, const SgdConstants& constants,
                       const CarryConstants& carry, std::int64_t n) {
  return with_sgd_rule(constants,
                       [&](const auto& rule) { return carry_block(at, rule, carry, n); });
}

std::int64_t carry_adamw(const CarriedTrits& at, const AdamwConstants& constants,
                         const CarryConstants& carry, std::int64_t n) {
  return carry_block(at, AdamwRule(constants), carry, n);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
