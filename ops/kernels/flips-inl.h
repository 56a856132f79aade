// The update of ternary weights: engine/flips.h without a branch per element, on levels that are
// never stored.
//
// Up to threshold 42 a code trit K + accumulator fits a byte, and so do the levels of all formats.
// From 63 on, carry without hysteresis keeps to the bytes of trit and accumulator, as long as the
// levels fit one. Otherwise lanes have 16 bits: |trit K + accumulator| <= 253 + 128, the
// sum with the levels is clamped at once, and the hysteresis is clamped beforehand.
#pragma once

#include <algorithm>
#include <array>

#include "ops/kernels/levels-inl.h"
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
FlipCounts descend_words(std::int8_t* trits, std::int8_t* accumulators, const Direction& direction,
                         const LevelRounding& rounding, const FlipPolicy& policy, const Rule& rule,
                         std::int64_t n) {
  FlipCounts counts;
  const std::int64_t done = with_direction(direction, rounding, [&](const auto& source) {
    const Levels levels(source, rounding);
    return for_each_vector(n, counts, [=](std::int64_t i, CountLanes& lanes) {
      const TritLanes next =
          rule({read_i16(trits + i), read_i16(accumulators + i)}, levels.words(i), lanes);
      write_narrow(trits + i, next.trit);
      write_narrow(accumulators + i, next.accumulator);
    });
  });
  if (done < n) {
    counts += reference::descend_ternary(trits + done, accumulators + done, direction.from(done),
                                         rounding.from(done), policy, n - done);
  }
  return counts;
}

// ---- codes of one byte -------------------------------------------------------------------------

I8 splat_byte(int value) { return I8(static_cast<std::int8_t>(value)); }

constexpr int kMostByteThreshold = 42;
constexpr int kMostByteLevels = 127;

using ByteMask = xsimd::batch_bool<std::int8_t, Arch>;

// Counts of flips, a byte per lane.
class ByteCounts {
 public:
  void add(const ByteMask& flips, const ByteMask& rail_flips) {
    flips_ = count_up(flips_, flips);
    rail_flips_ = count_up(rail_flips_, rail_flips);
    if (++additions_ == 255) drain();
  }

  FlipCounts total() {
    drain();
    return total_;
  }

 private:
  void drain() {
    total_.flips += static_cast<std::int64_t>(xsimd::hadd(sum_eights(flips_)));
    total_.rail_flips += static_cast<std::int64_t>(xsimd::hadd(sum_eights(rail_flips_)));
    flips_ = rail_flips_ = U8(std::uint8_t{0});
    additions_ = 0;
  }

  U8 flips_ = U8(std::uint8_t{0}), rail_flips_ = U8(std::uint8_t{0});
  int additions_ = 0;
  FlipCounts total_;
};

struct ByteTrits {
  ByteMask positive, negative;
};

// Carry, one trit at a time, on codes c = K T + A with K = 2 threshold + 1 and threshold <= 42.
// With kWhole, threshold is 42: codes end where bytes do.
template <bool kWhole>
struct ByteRule {
  explicit ByteRule(int threshold_, int hysteresis_)
      : threshold(splat_byte(threshold_)),
        below(splat_byte(-threshold_)),
        trit(splat_byte(2 * threshold_ + 1)),
        limit(splat_byte(3 * threshold_ + 1)),
        least(-limit),
        // Further than across all codes is no further.
        hysteresis(splat_byte(std::clamp(hysteresis_, -127, 127))),
        pushes(hysteresis_ != 0) {}

  ByteTrits trits_of(const I8& code) const { return {code > threshold, code < below}; }
  // The codes whose remainder is zero.
  I8 centre_of(const ByteTrits& trits) const {
    return select(trits.positive, trit, splat_byte(0)) -
           select(trits.negative, trit, splat_byte(0));
  }

  I8 operator()(const I8& stored, const I8& levels, ByteCounts& counts) const {
    return step(stored, trits_of(stored), levels, counts);
  }
  // `before`: the trits of `stored`.
  I8 step(const I8& stored, const ByteTrits& before, const I8& levels, ByteCounts& counts) const {
    const I8 code = limited(stored);
    // Saturated sums are beyond the limit, too; a sum modulo 256 that should have been saturated
    // has the other sign.
    const I8 next = limited(xsimd::sadd(code, levels));
    const ByteMask past_rail = next != code + levels;
    const ByteTrits after = trits_of(next);
    const ByteMask moved =
        (before.positive != after.positive) | (before.negative != after.negative);
    counts.add(moved, past_rail & ~moved);
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

  I8 limited(const I8& code) const {
    const I8 from_below = xsimd::max(code, least);
    return kWhole ? from_below : xsimd::min(from_below, limit);
  }

  I8 threshold, below, trit, limit, least, hysteresis;
  bool pushes;
};

// body(ByteRule)
template <typename Body>
auto with_byte_rule(int threshold, int hysteresis, const Body& body) {
  if (threshold == kMostByteThreshold) return body(ByteRule<true>(threshold, hysteresis));
  return body(ByteRule<false>(threshold, hysteresis));
}

// Carry without hysteresis, one trit at a time, from threshold 63 on: K = 2 threshold + 1 is 127 at
// least, so levels of a byte pass one trit at most.
constexpr int kLeastWideThreshold = 63;

struct WideByteRule {
  explicit WideByteRule(int threshold_)
      : threshold(splat_byte(threshold_)), levels_per_trit(splat_byte(2 * threshold_ + 1)) {}

  // Not beyond the rails, which no update writes, and no levels that may have been cut.
  bool holds_for(const I8& accumulator, const I8& levels) const {
    const I8 most = splat_byte(kMostByteLevels);
    return !xsimd::any((accumulator > threshold) | (accumulator < -threshold) | (levels >= most) |
                       (levels <= -most));
  }

  void operator()(I8& trit, I8& accumulator, const I8& levels, FlipCounts& counts) const {
    const I8 zero = splat_byte(0), one = splat_byte(1);
    const I8 saturated = xsimd::sadd(accumulator, levels);
    const ByteMask up = saturated > threshold, down = saturated < -threshold;
    const ByteMask at_top = trit > zero, at_bottom = trit < zero;
    const ByteMask rises = up & ~at_top, falls = down & ~at_bottom;
    const ByteMask past_top = up & at_top, past_bottom = down & at_bottom;
    // Modulo 256: what is left after a flip fits a byte again.
    const I8 next = accumulator + levels - select(rises, levels_per_trit, zero) +
                    select(falls, levels_per_trit, zero);
    accumulator = select(past_top, threshold, select(past_bottom, -threshold, next));
    trit = trit + select(rises, one, zero) - select(falls, one, zero);
    counts.flips += count(rises | falls);
    counts.rail_flips += count(past_top | past_bottom);
  }

  I8 threshold, levels_per_trit;
};

// next(planes, levels) for each vector of bytes, planes being pointers to its numbers. The last,
// which may be shorter, is filled up with zeros, which do not move.
template <std::size_t kPlanes, typename Source, typename Next>
void for_each_byte_vector(const std::array<std::int8_t*, kPlanes>& planes, const Source& direction,
                          const LevelRounding& rounding, std::int64_t n, const Next& next) {
  constexpr std::int64_t kStep = kLanes<I8>;
  using Planes = std::array<std::int8_t*, kPlanes>;
  const Levels levels(direction, rounding);
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    Planes here;
    for (std::size_t p = 0; p < kPlanes; ++p) {
      here[p] = planes[p] + i;
      // In vain, but cheap, for numbers that a format has unpacked.
      read_ahead(here[p], kStep);
    }
    next(here, levels.bytes(i));
  }
  if (i == n) return;
  std::int8_t numbers[kPlanes][kStep] = {};
  typename Source::Number rest_numbers[kStep];
  std::fill_n(rest_numbers, kStep, direction.zero());
  std::uint16_t rest_noise[kStep] = {};
  const std::int64_t rest = n - i;
  __builtin_memcpy(rest_numbers, direction.numbers + i,
                   static_cast<std::size_t>(rest) * sizeof(rest_numbers[0]));
  if (rounding.noise != nullptr) {
    __builtin_memcpy(rest_noise, rounding.noise + i,
                     static_cast<std::size_t>(rest) * sizeof(rest_noise[0]));
  }
  Planes here;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    here[p] = numbers[p];
    __builtin_memcpy(numbers[p], planes[p] + i, static_cast<std::size_t>(rest));
  }
  const LevelRounding rest_rounding{rounding.scale, rounding.limit,
                                    rounding.noise == nullptr ? nullptr : rest_noise,
                                    rounding.offset};
  Source rest_direction = direction;
  rest_direction.numbers = rest_numbers;
  next(here, Levels(rest_direction, rest_rounding).bytes(0));
  for (std::size_t p = 0; p < kPlanes; ++p) {
    __builtin_memcpy(planes[p] + i, numbers[p], static_cast<std::size_t>(rest));
  }
}

// ---- the kernels -------------------------------------------------------------------------------

template <typename Source, typename Rule>
FlipCounts descend_bytes(std::int8_t* trits, std::int8_t* accumulators, const Source& direction,
                         const LevelRounding& rounding, const Rule& rule, std::int64_t n) {
  ByteCounts counts;
  const std::array<std::int8_t*, 2> planes{trits, accumulators};
  for_each_byte_vector(planes, direction, rounding, n, [&](const auto& at, const I8& change) {
    const I8 trit = read<I8>(at[0]);
    const ByteTrits before{trit > splat_byte(0), trit < splat_byte(0)};
    const I8 code = xsimd::sadd(rule.centre_of(before), read<I8>(at[1]));
    const I8 next = rule.step(code, before, change, counts);
    const ByteTrits after = rule.trits_of(next);
    write(at[0], select(after.positive, splat_byte(1), splat_byte(0)) -
                     select(after.negative, splat_byte(1), splat_byte(0)));
    write(at[1], next - rule.centre_of(after));
  });
  return counts.total();
}

template <typename Source>
FlipCounts descend_wide_bytes(std::int8_t* trits, std::int8_t* accumulators,
                              const Direction& direction, const Source& source,
                              const LevelRounding& rounding, const FlipPolicy& policy,
                              std::int64_t n) {
  constexpr std::int64_t kStep = kLanes<I8>;
  const WideByteRule rule(policy.threshold);
  FlipCounts counts;
  const auto by_words = [&](std::int64_t i, std::int64_t count) {
    counts +=
        descend_words(trits + i, accumulators + i, direction.from(i), rounding.from(i), policy,
                      CarryRule<Transition::kStepOneTrit>(policy.threshold, 0), count);
  };
  const Levels levels(source, {rounding.scale, std::min(rounding.limit, kMostByteLevels),
                               rounding.noise, rounding.offset});
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    read_ahead(accumulators + i, kStep);
    I8 trit = read<I8>(trits + i), accumulator = read<I8>(accumulators + i);
    const I8 change = levels.bytes(i);
    if (!rule.holds_for(accumulator, change)) {
      by_words(i, kStep);
      continue;
    }
    rule(trit, accumulator, change, counts);
    write(trits + i, trit);
    write(accumulators + i, accumulator);
  }
  if (i < n) by_words(i, n - i);
  return counts;
}

FlipCounts descend_ternary(std::int8_t* trits, std::int8_t* accumulators,
                           const Direction& direction, const LevelRounding& rounding,
                           const FlipPolicy& policy, std::int64_t n) {
  const auto by_words = [&](const auto& rule) {
    return descend_words(trits, accumulators, direction, rounding, policy, rule, n);
  };
  if (policy.on_flip == OnFlip::kReset) return by_words(ResetRule(policy));
  if (policy.transition == Transition::kSetSign) {
    return by_words(CarryRule<Transition::kSetSign>(policy.threshold, policy.hysteresis));
  }
  if (policy.threshold <= kMostByteThreshold && rounding.limit <= kMostByteLevels) {
    return with_byte_rule(policy.threshold, policy.hysteresis, [&](const auto& rule) {
      return with_direction(direction, rounding, [&](const auto& source) {
        return descend_bytes(trits, accumulators, source, rounding, rule, n);
      });
    });
  }
  if (policy.threshold >= kLeastWideThreshold && policy.hysteresis == 0) {
    return with_direction(direction, rounding, [&](const auto& source) {
      return descend_wide_bytes(trits, accumulators, direction, source, rounding, policy, n);
    });
  }
  return by_words(CarryRule<Transition::kStepOneTrit>(policy.threshold, policy.hysteresis));
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
