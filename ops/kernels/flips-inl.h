// The update of ternary weights: engine/flips.h on 16-bit lanes, without a branch per element.
//
// Sixteen bits are enough: |trit K + accumulator| <= 253 + 128, the sum with `levels` saturates and
// is clamped at once, and the hysteresis is clamped beforehand.
#pragma once

#include <algorithm>

#include "ops/kernels/reference.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

I16 splat(int value) { return I16(static_cast<std::int16_t>(value)); }

struct TritLanes {
  I16 trit, accumulator;
};

// One counter per lane; they must be drained before 2^15 additions.
struct CountLanes {
  I16 flips = splat(0), rail_flips = splat(0);

  void drain_into(FlipCounts& counts) {
    std::int16_t lanes[2][kLanes<I16>];
    write(lanes[0], flips);
    write(lanes[1], rail_flips);
    for (std::int16_t count : lanes[0]) counts.flips += count;
    for (std::int16_t count : lanes[1]) counts.rail_flips += count;
    flips = rail_flips = splat(0);
  }
};

I16 trit_of(const I16& code, const I16& threshold) {
  return one_if(code > threshold) - one_if(code < -threshold);
}

template <Transition kTransition>
struct CarryRule {
  explicit CarryRule(int threshold_, int hysteresis_)
      : threshold(splat(threshold_)),
        levels_per_trit(splat(2 * threshold_ + 1)),
        limit(splat(3 * threshold_ + 1)),
        // 758 levels cross the whole range of codes; more changes nothing.
        hysteresis(splat(std::clamp(hysteresis_, -1000, 1000))) {}

  // `code` is trit * levels_per_trit + accumulator.
  TritLanes step(const I16& trit, const I16& code, const I16& levels, CountLanes& counts) const {
    const I16 wanted = xsimd::sadd(code, levels);
    I16 next_code = clamp(wanted, -limit, limit);
    const auto past_rail = next_code != wanted;
    I16 next_trit = trit_of(next_code, threshold);
    if constexpr (kTransition == Transition::kSetSign) {
      const auto to_zero = (next_trit == splat(0)) & (trit != splat(0));
      next_code = xsimd::select(to_zero, -trit * levels_per_trit, next_code);
      next_trit = xsimd::select(to_zero, -trit, next_trit);
    }
    const I16 moved = next_trit - trit;
    counts.flips += one_if(moved != splat(0));
    counts.rail_flips += one_if((moved == splat(0)) & past_rail);
    const I16 pushed = clamp(next_code + hysteresis * moved, -limit, limit);
    return {next_trit, clamp(pushed - next_trit * levels_per_trit, -threshold, threshold)};
  }

  TritLanes operator()(const TritLanes& state, const I16& levels, CountLanes& counts) const {
    return step(state.trit, state.trit * levels_per_trit + state.accumulator, levels, counts);
  }

  I16 threshold, levels_per_trit, limit, hysteresis;
};

struct ResetRule {
  explicit ResetRule(const FlipPolicy& policy)
      : threshold(splat(policy.threshold)),
        stride(splat(policy.transition == Transition::kSetSign ? 2 : 1)) {}

  TritLanes operator()(const TritLanes& state, const I16& levels, CountLanes& counts) const {
    const I16 sum = clamp(xsimd::sadd(state.accumulator, levels), splat(-127), splat(127));
    const I16 direction = xsimd::select(levels != splat(0), trit_of(sum, threshold), splat(0));
    const I16 next_trit = clamp(state.trit + direction * stride, splat(-1), splat(1));
    const auto passed = direction != splat(0);
    const auto changed = next_trit != state.trit;
    counts.flips += one_if(changed);
    counts.rail_flips += one_if(passed) - one_if(changed);
    return {next_trit, xsimd::select(passed, splat(0), sum)};
  }

  I16 threshold;
  I16 stride;  // 2 reaches the other sign from anywhere
};

// Calls body(i, counts) for each whole vector of [0, n); returns where the rest begins.
template <typename Body>
std::int64_t for_each_vector(std::int64_t n, FlipCounts& counts, const Body& body) {
  constexpr std::int64_t step = kLanes<I16>, drain_every = 32767 * step;
  const std::int64_t whole = n / step * step;
  CountLanes lanes;
  for (std::int64_t i = 0; i < whole;) {
    const std::int64_t end = std::min(whole, i + drain_every);
    for (; i < end; i += step) body(i, lanes);
    lanes.drain_into(counts);
  }
  return whole;
}

template <typename Rule>
std::int64_t accumulate_whole_vectors(std::int8_t* trits, std::int8_t* accumulators,
                                      const std::int16_t* levels, const Rule& rule, std::int64_t n,
                                      FlipCounts& counts) {
  return for_each_vector(n, counts, [=](std::int64_t i, CountLanes& lanes) {
    const TritLanes next =
        rule({read_i16(trits + i), read_i16(accumulators + i)}, read<I16>(levels + i), lanes);
    write_narrow(trits + i, next.trit);
    write_narrow(accumulators + i, next.accumulator);
  });
}

FlipCounts accumulate_ternary(std::int8_t* trits, std::int8_t* accumulators,
                              const std::int16_t* levels, const FlipPolicy& policy,
                              std::int64_t n) {
  FlipCounts counts;
  const auto accumulate_with = [&](const auto& rule) {
    return accumulate_whole_vectors(trits, accumulators, levels, rule, n, counts);
  };
  std::int64_t done = 0;
  if (policy.on_flip == OnFlip::kReset) {
    done = accumulate_with(ResetRule(policy));
  } else if (policy.transition == Transition::kSetSign) {
    done = accumulate_with(CarryRule<Transition::kSetSign>(policy.threshold, policy.hysteresis));
  } else {
    done =
        accumulate_with(CarryRule<Transition::kStepOneTrit>(policy.threshold, policy.hysteresis));
  }
  const FlipCounts rest = reference::accumulate_ternary(trits + done, accumulators + done,
                                                        levels + done, policy, n - done);
  return {counts.flips + rest.flips, counts.rail_flips + rest.rail_flips};
}

FlipCounts accumulate_latent(std::int8_t* codes, const std::int16_t* levels, int threshold,
                             int hysteresis, std::int64_t n) {
  const CarryRule<Transition::kStepOneTrit> rule(threshold, hysteresis);
  FlipCounts counts;
  const std::int64_t done = for_each_vector(n, counts, [=](std::int64_t i, CountLanes& lanes) {
    const I16 code = read_i16(codes + i);
    const TritLanes next =
        rule.step(trit_of(code, rule.threshold), code, read<I16>(levels + i), lanes);
    write_narrow(codes + i, next.trit * rule.levels_per_trit + next.accumulator);
  });
  const FlipCounts rest =
      reference::accumulate_latent(codes + done, levels + done, threshold, hysteresis, n - done);
  return {counts.flips + rest.flips, counts.rail_flips + rest.rail_flips};
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
