// The update of ternary weights: engine/formats/flips.h without a branch per element. Levels are
// never stored but for those of one row, a byte each.
//
// Up to threshold 42 a code trit K + accumulator fits a byte, and so do the levels of all formats.
// From 63 on, carry without hysteresis keeps to the bytes of trit and accumulator, as long as the
// levels fit one. Otherwise lanes have 16 bits: |trit K + accumulator| <= 253 + 128, the
// sum with the levels is clamped at once, and the hysteresis is clamped beforehand.
#pragma once

#include <algorithm>
#include <array>

#include "ops/kernels/targets.h"
#include "ops/kernels/updates/byte_rules-inl.h"

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
    const I16 wanted = sadd(code, levels);
    I16 next_code = clamp(wanted, -limit, limit);
    const auto past_rail = next_code != wanted;
    I16 next_trit = trit_of(next_code, threshold);
    if constexpr (kTransition == Transition::kSetSign) {
      const auto to_zero = (next_trit == splat(0)) & (trit != splat(0));
      next_code = select(to_zero, -trit * levels_per_trit, next_code);
      next_trit = select(to_zero, -trit, next_trit);
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
    const I16 sum = clamp(sadd(state.accumulator, levels), splat(-127), splat(127));
    const I16 direction = select(levels != splat(0), trit_of(sum, threshold), splat(0));
    const I16 next_trit = clamp(state.trit + direction * stride, splat(-1), splat(1));
    const auto passed = direction != splat(0);
    const auto changed = next_trit != state.trit;
    counts.flips += one_if(changed);
    counts.rail_flips += one_if(passed) - one_if(changed);
    return {next_trit, select(passed, splat(0), sum)};
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

// A row of trits and accumulators.
struct TernaryRow {
  TernaryRow from(std::int64_t i) const {
    return {trits + i, accumulators + i, direction.from(i), rounding.from(i), n - i};
  }

  std::int8_t* trits;
  std::int8_t* accumulators;
  Direction direction;
  LevelRounding rounding;
  std::int64_t n;
};

template <typename Rule>
FlipCounts descend_words(const TernaryRow& row, const FlipPolicy& policy, const Rule& rule) {
  FlipCounts counts;
  std::int8_t *trits = row.trits, *accumulators = row.accumulators;
  const std::int64_t done = with_direction(row.direction, row.rounding, [&](const auto& source) {
    const Levels levels(source, row.rounding);
    return for_each_vector(row.n, counts, [=](std::int64_t i, CountLanes& lanes) {
      const TritLanes next =
          rule({read_i16(trits + i), read_i16(accumulators + i)}, levels.words(i), lanes);
      write_narrow(trits + i, next.trit);
      write_narrow(accumulators + i, next.accumulator);
    });
  });
  if (done < row.n) {
    const TernaryRow rest = row.from(done);
    FlipCounts of_rest;
    reference::kKernels.updates.descend_ternary(&of_rest, rest.trits, 0, rest.accumulators, 0,
                                                {&rest.direction, &rest.rounding, 1, rest.n},
                                                policy);
    counts += of_rest;
  }
  return counts;
}

// ---- the kernels -------------------------------------------------------------------------------

template <typename Rule>
struct DescendBytes {
  explicit DescendBytes(const Rule& rule_) : rule(rule_) {}

  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 2>& at, const I8& levels,
                                         ByteCounts& counts, std::int64_t /*i*/) const {
    const I8 trit = read<I8>(at[0]);
    const ByteTrits before{trit > splat_byte(0), trit < splat_byte(0)};
    const I8 code = sadd(rule.centre_of(before), read<I8>(at[1]));
    const I8 next = rule.step(code, before, levels, counts);
    const ByteTrits after = rule.trits_of(next);
    write(at[0], select(after.positive, splat_byte(1), splat_byte(0)) -
                     select(after.negative, splat_byte(1), splat_byte(0)));
    write(at[1], next - rule.centre_of(after));
  }

  Rule rule;
};

// The update for threshold 0 without hysteresis: a level is a whole trit, and nothing is left over.
struct DescendWholeTrits {
  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 2>& at, const I8& levels,
                                         ByteCounts& counts, std::int64_t /*i*/) const {
    const I8 one = splat_byte(1);
    const I8 trit = read<I8>(at[0]);
    const I8 code = clamp(sadd(trit, read<I8>(at[1])), -one, one);
    const I8 next = clamp(sadd(code, levels), -one, one);
    const ByteMask moved = next != trit;
    counts.add(moved, (next != code + levels) & ~moved);
    write(at[0], next);
    write(at[1], splat_byte(0));
  }
};

struct DescendWideBytes {
  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 2>& at, const I8& levels,
                                         FlipCounts& counts, std::int64_t /*i*/) const {
    I8 trit = read<I8>(at[0]), accumulator = read<I8>(at[1]);
    rule(trit, accumulator, levels, counts);
    write(at[0], trit);
    write(at[1], accumulator);
  }

  WideByteRule rule;
};

FlipCounts descend_row_by_words(const TernaryRow& row, const FlipPolicy& policy) {
  if (policy.on_flip == OnFlip::kReset) return descend_words(row, policy, ResetRule(policy));
  const int threshold = policy.threshold, hysteresis = policy.hysteresis;
  if (policy.transition == Transition::kSetSign) {
    return descend_words(row, policy, CarryRule<Transition::kSetSign>(threshold, hysteresis));
  }
  return descend_words(row, policy, CarryRule<Transition::kStepOneTrit>(threshold, hysteresis));
}

// Rows of trits and accumulators, and what they are moved by.
struct TernaryRows {
  std::array<std::int8_t*, 2> planes_at(std::int64_t r, std::int64_t i) const {
    return {trits + r * ld + i, accumulators + r * ld_a + i};
  }

  std::int8_t* trits;
  std::int64_t ld;
  std::int8_t* accumulators;
  std::int64_t ld_a;
  const DirectionRows& by;
};

void descend_by_words(FlipCounts* counts, const TernaryRows& rows, const FlipPolicy& policy) {
  for (std::int64_t r = 0; r < rows.by.count; ++r) {
    const Direction& direction = rows.by.directions[r];
    if (rows.by.squares != nullptr) {
      rows.by.squares[r] = sum_of_squares(direction, rows.by.n);
    }
    const auto [trits, accumulators] = rows.planes_at(r, 0);
    counts[r] = descend_row_by_words(
        {trits, accumulators, direction, rows.by.roundings[r], rows.by.n}, policy);
  }
}

template <typename Next>
void descend_by_bytes(FlipCounts* counts, const TernaryRows& rows, const Next& next) {
  for_each_levels(rows.by,
                  [&](std::int64_t r, std::int64_t col, std::int64_t n, const std::int8_t* levels) {
                    ByteCounts of_row;
                    for_each_byte_vector(rows.planes_at(r, col), levels, n, next, of_row);
                    counts[r] += of_row.total();
                  });
}

// Updates by bytes, or by words where the rule for bytes does not hold.
void descend_by_wide_bytes(FlipCounts* counts, const TernaryRows& rows, const FlipPolicy& policy) {
  const WideByteRule rule(policy.threshold);
  for_each_levels(
      rows.by, [&](std::int64_t r, std::int64_t col, std::int64_t n, const std::int8_t* levels) {
        const std::array<std::int8_t*, 2> planes = rows.planes_at(r, col);
        if (!rule.holds_for(planes[1], levels, n)) {
          counts[r] += descend_row_by_words({planes[0], planes[1], rows.by.directions[r].from(col),
                                             rows.by.roundings[r].from(col), n},
                                            policy);
          return;
        }
        FlipCounts of_row;
        for_each_byte_vector(planes, levels, n, DescendWideBytes{rule}, of_row);
        counts[r] += of_row;
      });
}

void descend_ternary(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                     std::int8_t* accumulators, std::int64_t ld_a, const DirectionRows& by,
                     const FlipPolicy& policy) {
  const TernaryRows rows{trits, ld, accumulators, ld_a, by};
  std::fill_n(counts, by.count, FlipCounts{});
  const bool steps =
      policy.on_flip == OnFlip::kCarry && policy.transition == Transition::kStepOneTrit;
  const bool small = std::all_of(by.roundings, by.roundings + by.count,
                                 [](const LevelRounding& r) { return r.limit <= kMostByteLevels; });
  if (steps && small && policy.threshold == 0 && policy.hysteresis == 0) {
    return descend_by_bytes(counts, rows, DescendWholeTrits{});
  }
  if (steps && small && policy.threshold <= kMostByteThreshold) {
    return with_byte_rule(policy.threshold, policy.hysteresis, [&](const auto& rule) {
      descend_by_bytes(counts, rows, DescendBytes(rule));
    });
  }
  if (steps && policy.threshold >= kLeastWideThreshold && policy.hysteresis == 0) {
    return descend_by_wide_bytes(counts, rows, policy);
  }
  descend_by_words(counts, rows, policy);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
