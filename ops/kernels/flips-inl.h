// The update of ternary weights: engine/flips.h without a branch per element.
//
// Up to threshold 42 a code trit K + accumulator fits a byte, and so do the levels of all formats.
// (Latents with other levels are left to the reference.) Beyond, and for the other policies, lanes
// have 16 bits: |trit K + accumulator| <= 253 + 128, the sum with `levels` is clamped at once, and
// the hysteresis is clamped beforehand.
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
    const I16 code = state.trit * levels_per_trit + state.accumulator;
    return step(state.trit, clamp(code, -limit, limit), levels, counts);
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

// ---- codes of one byte -------------------------------------------------------------------------

I8 splat_byte(int value) { return I8(static_cast<std::int8_t>(value)); }

constexpr int kMostByteThreshold = 42;

using ByteMask = xsimd::batch_bool<std::int8_t, Arch>;

struct ByteTrits {
  ByteMask positive, negative;
};

// Carry, one trit at a time, on codes c = K T + A with K = 2 threshold + 1 and threshold <= 42.
struct ByteRule {
  explicit ByteRule(int threshold_, int hysteresis_)
      : threshold(splat_byte(threshold_)),
        trit(splat_byte(2 * threshold_ + 1)),
        limit(splat_byte(3 * threshold_ + 1)),
        // Further than across all codes is no further.
        hysteresis(splat_byte(std::clamp(hysteresis_, -127, 127))),
        pushes(hysteresis_ != 0) {}

  ByteTrits trits_of(const I8& code) const { return {code > threshold, code < -threshold}; }
  // The codes whose remainder is zero.
  I8 centre_of(const ByteTrits& trits) const {
    return select(trits.positive, trit, splat_byte(0)) -
           select(trits.negative, trit, splat_byte(0));
  }

  I8 operator()(const I8& stored, const ByteTrits& before, const I8& levels,
                FlipCounts& counts) const {
    const I8 code = clamp(stored, -limit, limit);
    // Saturated sums are beyond the limit, too, and saturated distances beyond all levels.
    const I8 next = clamp(xsimd::sadd(code, levels), -limit, limit);
    const ByteMask past_rail =
        (levels > xsimd::ssub(limit, code)) | (levels < xsimd::ssub(-limit, code));
    const ByteTrits after = trits_of(next);
    const ByteMask moved =
        (before.positive != after.positive) | (before.negative != after.negative);
    counts.flips += count(moved);
    counts.rail_flips += count(past_rail) - count(past_rail & moved);
    return pushes ? push(next, before, after) : next;
  }

  // Adds the hysteresis once for every trit that was passed, without leaving the new one.
  I8 push(const I8& code, const ByteTrits& before, const ByteTrits& after) const {
    const auto push_where = [&](const I8& x, const ByteMask& up, const ByteMask& down) {
      return xsimd::ssub(xsimd::sadd(x, select(up, hysteresis, splat_byte(0))),
                         select(down, hysteresis, splat_byte(0)));
    };
    const I8 once =
        push_where(code, after.positive & ~before.positive, after.negative & ~before.negative);
    const I8 twice =
        push_where(once, before.negative & ~after.negative, before.positive & ~after.positive);
    const I8 centre = centre_of(after);
    return clamp(twice, centre - threshold, centre + threshold);
  }

  I8 threshold, trit, limit, hysteresis;
  bool pushes;
};

// Whether levels of the whole vectors of bytes are within +-127, as those of all formats are up to
// threshold 42.
bool fit_bytes(const std::int16_t* levels, std::int64_t n) {
  I16 most = splat(0), least = splat(0);
  const std::int64_t whole = n / kLanes<I8> * kLanes<I8>;
  for (std::int64_t i = 0; i < whole; i += kLanes<I16>) {
    most = xsimd::max(most, read<I16>(levels + i));
    least = xsimd::min(least, read<I16>(levels + i));
  }
  return !xsimd::any((most > splat(127)) | (least < splat(-127)));
}

// next(i, levels) for each whole vector of bytes; returns where the rest begins.
template <typename Next>
std::int64_t for_each_byte_vector(const std::int16_t* levels, std::int64_t n, const Next& next) {
  constexpr std::int64_t step = kLanes<I8>;
  const std::int64_t whole = n / step * step;
  for (std::int64_t i = 0; i < whole; i += step) {
    next(i, narrow(read<I16>(levels + i), read<I16>(levels + i + step / 2)));
  }
  return whole;
}

std::int64_t accumulate_bytes(std::int8_t* trits, std::int8_t* accumulators,
                              const std::int16_t* levels, const ByteRule& rule, std::int64_t n,
                              FlipCounts& total) {
  FlipCounts counts;
  const std::int64_t done = for_each_byte_vector(levels, n, [&](std::int64_t i, const I8& change) {
    const I8 trit = read<I8>(trits + i);
    const ByteTrits before{trit > splat_byte(0), trit < splat_byte(0)};
    const I8 code = xsimd::sadd(rule.centre_of(before), read<I8>(accumulators + i));
    const I8 next = rule(code, before, change, counts);
    const ByteTrits after = rule.trits_of(next);
    write(trits + i, select(after.positive, splat_byte(1), splat_byte(0)) -
                         select(after.negative, splat_byte(1), splat_byte(0)));
    write(accumulators + i, next - rule.centre_of(after));
  });
  total = counts;
  return done;
}

// ---- the kernels -------------------------------------------------------------------------------

FlipCounts accumulate_ternary(std::int8_t* trits, std::int8_t* accumulators,
                              const std::int16_t* levels, const FlipPolicy& policy,
                              std::int64_t n) {
  FlipCounts counts;
  const auto accumulate_with = [&](const auto& rule) {
    return accumulate_whole_vectors(trits, accumulators, levels, rule, n, counts);
  };
  std::int64_t done = 0;
  if (policy.on_flip == OnFlip::kCarry && policy.transition == Transition::kStepOneTrit &&
      policy.threshold <= kMostByteThreshold && fit_bytes(levels, n)) {
    done = accumulate_bytes(trits, accumulators, levels,
                            ByteRule(policy.threshold, policy.hysteresis), n, counts);
  } else if (policy.on_flip == OnFlip::kReset) {
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
  if (!fit_bytes(levels, n)) {
    return reference::accumulate_latent(codes, levels, threshold, hysteresis, n);
  }
  const ByteRule rule(threshold, hysteresis);
  FlipCounts counts;
  const std::int64_t done = for_each_byte_vector(levels, n, [&](std::int64_t i, const I8& change) {
    const I8 code = read<I8>(codes + i);
    write(codes + i, rule(code, rule.trits_of(code), change, counts));
  });
  const FlipCounts rest =
      reference::accumulate_latent(codes + done, levels + done, threshold, hysteresis, n - done);
  return {counts.flips + rest.flips, counts.rail_flips + rest.rail_flips};
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
