// One update of FlashOptim's formats in one pass: decoding, rule, descent and encoding of a run,
// for any rule and with or without a second moment.
//
// First all numbers of the run are decoded, moved and kept as fp32 in the first-level cache; then
// the scales of all groups are chosen; then everything is encoded. Nothing is written before it is
// known that all numbers are ordinary (split-inl.h, companded-inl.h); otherwise the run is left to
// the kernels for each part, whose bits these are.
#pragma once

#include "ops/kernels/codecs/companded-inl.h"
#include "ops/kernels/codecs/split-inl.h"
#include "ops/kernels/targets.h"
#include "ops/kernels/updates/rule_lanes-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// Numbers of a run after its update, and what the scales of its groups make of them. The gaps keep
// stores to one array from looking like loads from another.
struct FlashNumbers {
  static constexpr std::int64_t kGroups = kMostFlashElements / kCompandedGroup;
  using Row = float[kMostFlashElements + 80];
  alignas(64) Row weight, m, v, root;
  alignas(64) float m_inverse[kGroups + kLanes<F32>], v_inverse[kGroups + kLanes<F32>];
  alignas(64) float root_inverse[kGroups + kLanes<F32>];
  std::uint16_t m_scales[kGroups], v_scales[kGroups];
};

// Shares of codes -128..127, exactly as Coder<SoftsignCurve>::share() has them.
struct ShareTable {
  constexpr ShareTable() : shares{} {
    for (int i = 0; i < 256; ++i) {
      const auto number = static_cast<float>(i - 128);
      shares[i] = number / (254.0f - (number < 0.0f ? -number : number));
    }
  }
  alignas(64) float shares[256];
};
constexpr ShareTable kShareTable;

#ifdef __AVX512F__
constexpr bool kCanLookUp = true;
#else
constexpr bool kCanLookUp = false;
#endif

template <bool kLooksUp>
F32 share_of(const std::int8_t* codes) {
#ifdef __AVX512F__
  if constexpr (kLooksUp) {
    // Onto zeros: what was in the register before would have to be waited for.
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xFFFF, read_i32(codes),
                                    kShareTable.shares + 128, sizeof(float));
  }
#endif
  return Coder<SoftsignCurve>::share<false>(read_i32(codes));
}

inline bool any_zero_byte(const std::uint8_t* four_vectors) {
  bool found = false;
  for (std::int64_t i = 0; i < kFourVectors; i += kLanes<U8>) {
    found |= any(read<U8>(four_vectors + i) == U8(std::uint8_t{0}));
  }
  return found;
}

inline F32 read_numbers(const float* p) { return read<F32>(p); }
inline F32 read_numbers(const std::uint16_t* p) { return bits_as<F32>(read_upper_halves(p)); }

// Decodes and moves all numbers; returns whether the weights are ordinary afterwards, and so nearly
// all that they were made of: what is not finite in a gradient, a first moment or a weight goes on
// into them. (An infinite second moment is found by flash_scales.)
template <bool kLooksUp, typename Rule, typename Gradient>
bool flash_move(FlashNumbers& to, const FlashElements& at, const Gradient* grad, const Rule& rule,
                float lr, std::int64_t n) {
  constexpr std::int64_t kVectors = kFlashStep / kLanes<F32>;
  const F32 rate(lr);
  constexpr std::int64_t kGroups = FlashNumbers::kGroups;
  float m_scale[kGroups], v_scale[kGroups];
  for (std::int64_t g = 0; g < n / kCompandedGroup; ++g) {
    m_scale[g] = float_of_scale(at.m_scales[g]);
    if constexpr (Rule::kHasSecondMoment) v_scale[g] = float_of_scale(at.v_scales[g]);
  }
  OrdinarySplit ordinary;
  for (std::int64_t i = 0; i < n; i += kFlashStep) {
    read_ahead(grad + i, kFlashStep);
    read_ahead(at.value + i, kFlashStep);
    read_ahead(at.correction + i, kFlashStep);
    read_ahead(at.m + i, kFlashStep);
    if constexpr (Rule::kHasSecondMoment) read_ahead(at.v + i, kFlashStep);
    const std::int64_t group = i / kCompandedGroup;
    F32 ahead[kVectors], v[kVectors];
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < kVectors; ++k) {
      const std::int64_t j = i + k * kLanes<F32>;
      const std::int64_t its_group = group + k / kVectorsOfGroup;
      F32 m = F32(m_scale[its_group]) * share_of<kLooksUp>(at.m + j);
      if constexpr (Rule::kHasSecondMoment) {
        v[k] = F32(v_scale[its_group]) * Coder<RootCurve>::share<false>(read_i32(at.v + j));
      }
      F32 g = read_numbers(grad + j);
      if constexpr (Rule::kCouplesDecay) {
        g = rule.decayed(g, decode_split8_at(at.value + j, at.correction + j));
      }
      ahead[k] = rule.remember(g, m, v[k]);
      if constexpr (!Rule::kShowsMoment) ordinary.look_at(m);
      write(to.m + j, m);
      if constexpr (Rule::kHasSecondMoment) write(to.v + j, v[k]);
    }
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < kVectors; ++k) {
      const std::int64_t j = i + k * kLanes<F32>;
      const F32 w = decode_split8_at(at.value + j, at.correction + j);
      F32 root;
      const F32 next = w - rate * rule.direction(ahead[k], v[k], w, root);
      ordinary.look_at(next);
      write(to.weight + j, next);
      if constexpr (Rule::kHasSecondMoment) write(to.root + j, root);
    }
  }
  return ordinary.all();
}

template <bool kLooksUp, typename Rule>
bool flash_move(FlashNumbers& to, const FlashElements& at, const Rule& rule, float lr,
                std::int64_t n) {
  return at.grad != nullptr ? flash_move<kLooksUp>(to, at, at.grad, rule, lr, n)
                            : flash_move<kLooksUp>(to, at, at.bf16_grad, rule, lr, n);
}

// Chooses the scales of numbers that are not NaN.
template <typename Curve>
bool flash_scales(std::uint16_t* scales, float* inverse, const float* numbers, std::int64_t n) {
  const std::int64_t groups = n / kCompandedGroup;
  bool ordinary = true;
  const auto choose = [&]<std::int64_t kCount>(std::int64_t group) {
    ordinary &= choose_ordinary_scales<Curve, kCount, true>(scales + group, inverse + group,
                                                            numbers + group * kCompandedGroup);
  };
  constexpr std::int64_t kMost = kLanes<U32>;
  std::int64_t group = 0;
  for (; group + kMost <= groups; group += kMost) choose.template operator()<kMost>(group);
  if constexpr (kMost > 8) {
    for (; group + 8 <= groups; group += 8) choose.template operator()<8>(group);
  }
  for (; group < groups; group += 2) choose.template operator()<2>(group);
  return ordinary;
}

// Codes of v from the roots that the rule has taken: roots times the inverse of the scale's. That
// and Coder<RootCurve>::encode() differ by at most ten roundings of numbers up to 256, which is
// 1.6e-4; so all is well unless a number lies as near to the middle between two codes, or has code
// 0, which a positive number never has.
inline void encode_roots_at(std::uint8_t* codes, const FlashNumbers& numbers, std::int64_t i) {
  I32 code[4];
  F32 off(0.0f);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = i + k * kLanes<F32>;
    const F32 root = read<F32>(numbers.root + at);
    const F32 exact = root * F32(numbers.root_inverse[at / kCompandedGroup]);
    const I32 nearest = round_to_i32(exact);
    off = larger_magnitude(off, exact - to_float(nearest));
    code[k] = nearest;
  }
  write_bytes(codes, code);
  if (any(off > F32(0.4998f)) || any_zero_byte(codes)) [[unlikely]] {
    encode_ordinary_at<RootCurve>(codes, numbers.v_inverse, numbers.v, i);
  }
}

template <typename Rule>
bool flash_update(const FlashElements& at, const Rule& rule, float lr, std::int64_t n) {
  if (n > kMostFlashElements || n % kFlashStep != 0) return false;
  FlashNumbers numbers;
  const std::int64_t groups = n / kCompandedGroup;
  const bool ordinary = kCanLookUp && gathers_quickly().load(std::memory_order_relaxed)
                            ? flash_move<kCanLookUp>(numbers, at, rule, lr, n)
                            : flash_move<false>(numbers, at, rule, lr, n);
  if (!ordinary) return false;
  if (!flash_scales<SoftsignCurve>(numbers.m_scales, numbers.m_inverse, numbers.m, n)) return false;
  if constexpr (Rule::kHasSecondMoment) {
    if (!flash_scales<RootCurve>(numbers.v_scales, numbers.v_inverse, numbers.v, n)) return false;
    const F32 factor(255.0f / rule.root_factor());
    for (std::int64_t g = 0; g < groups; g += kLanes<F32>) {
      write(numbers.root_inverse + g, factor * sqrt(read<F32>(numbers.v_inverse + g)));
    }
    std::copy_n(numbers.v_scales, groups, at.v_scales);
  }
  std::copy_n(numbers.m_scales, groups, at.m_scales);
  for (std::int64_t i = 0; i < n; i += kFourVectors) {
    F32 weight[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) weight[k] = read<F32>(numbers.weight + i + k * kLanes<F32>);
    encode_split8_at(at.value + i, at.correction + i, weight);
    encode_ordinary_at<SoftsignCurve, false>(at.m + i, numbers.m_inverse, numbers.m, i);
    if constexpr (Rule::kHasSecondMoment) encode_roots_at(at.v + i, numbers, i);
  }
  return true;
}

bool flash_adamw(const FlashElements& at, const AdamwConstants& constants, float lr,
                 std::int64_t n) {
  return flash_update(at, AdamwRule(constants), lr, n);
}

bool flash_lion(const FlashElements& at, const LionConstants& constants, float weight_decay,
                float lr, std::int64_t n) {
  return flash_update(at, LionRule(constants, weight_decay), lr, n);
}

bool flash_sgd(const FlashElements& at, const SgdConstants& constants, float lr, std::int64_t n) {
  return with_sgd_rule(constants, [&](const auto& rule) { return flash_update(at, rule, lr, n); });
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
