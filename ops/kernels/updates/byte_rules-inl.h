// Ternary weights updated a byte per lane (engine/formats/flips.h): as codes of one byte that hold
// a trit and its accumulator (latents, with their trits and their update), or with a byte for each.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/flips.h"
#include "ops/kernels/updates/levels-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

I8 splat_byte(int value) { return I8(static_cast<std::int8_t>(value)); }

constexpr int kMostByteThreshold = 42;
constexpr int kMostByteLevels = 127;

using ByteMask = Mask<std::int8_t>;

// Counters of flips, a byte per lane, and wider ones above them.
class ByteCounts {
 public:
  void add(const ByteMask& flips, const ByteMask& rail_flips) {
    flips_ = count_up(flips_, flips);
    rail_flips_ = count_up(rail_flips_, rail_flips);
    if (++additions_ == 255) drain();
  }

  FlipCounts total() {
    drain();
    FlipCounts counts;
    counts.flips = static_cast<std::int64_t>(sum_lanes(drained_flips_));
    counts.rail_flips = static_cast<std::int64_t>(sum_lanes(drained_rail_flips_));
    return counts;
  }

 private:
  void drain() {
    drained_flips_ += sum_eights(flips_);
    drained_rail_flips_ += sum_eights(rail_flips_);
    flips_ = rail_flips_ = U8(std::uint8_t{0});
    additions_ = 0;
  }

  U8 flips_ = U8(std::uint8_t{0}), rail_flips_ = U8(std::uint8_t{0});
  U64 drained_flips_ = U64(std::uint64_t{0}), drained_rail_flips_ = U64(std::uint64_t{0});
  int additions_ = 0;
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
    const I8 next = limited(sadd(code, levels));
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
      return ssub(sadd(x, select(up, hysteresis, splat_byte(0))),
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
    const I8 from_below = max(code, least);
    return kWhole ? from_below : min(from_below, limit);
  }

  I8 threshold, below, trit, limit, least, hysteresis;
  bool pushes;
};

// Calls body(ByteRule) with the rule for the threshold.
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

  // Nothing beyond the rails, where no update leaves anything, and no levels that may have been
  // cut.
  bool holds_for(const std::int8_t* accumulators, const std::int8_t* levels, std::int64_t n) const {
    constexpr std::uint8_t kMost = kMostByteLevels - 1;
    // As far from the largest level that is known as accumulators may be: up to 128 + 63 in a byte.
    const U8 room = U8(kMost) - U8(threshold);
    U8 most(std::uint8_t{0});
    const auto look = [&](const I8& accumulator, const I8& change) {
      most = max(most, U8(magnitudes(accumulator)) + room);
      most = max(most, U8(magnitudes(change)));
    };
    std::int64_t i = 0;
    for (; i + kLanes<I8> <= n; i += kLanes<I8>) {
      look(read<I8>(accumulators + i), read<I8>(levels + i));
    }
    if (i < n) look(read_first(accumulators + i, n - i, splat_byte(0)), read<I8>(levels + i));
    return !any(most > U8(kMost));
  }

  void operator()(I8& trit, I8& accumulator, const I8& levels, FlipCounts& counts) const {
    const I8 zero = splat_byte(0), one = splat_byte(1);
    const I8 saturated = sadd(accumulator, levels);
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

// Calls next(planes, levels, counts, i) for each vector of bytes of a row, planes being pointers to
// its numbers. In the last, which may be shorter, there are others that do not move. The rule by
// value: behind a reference it would stay in memory.
template <std::size_t kPlanes, typename Next, typename Counts>
[[gnu::always_inline]] inline void for_each_byte_vector(
    const std::array<std::int8_t*, kPlanes>& planes, const std::int8_t* levels, std::int64_t n,
    const Next next, Counts& counts) {
  constexpr std::int64_t kStep = kLanes<I8>;
  using Planes = std::array<std::int8_t*, kPlanes>;
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    Planes here;
    for (std::size_t p = 0; p < kPlanes; ++p) {
      here[p] = planes[p] + i;
      // In vain, but cheap, for numbers that a format has unpacked.
      read_ahead(here[p], kStep);
    }
    next(here, read<I8>(levels + i), counts, i);
  }
  if (i == n) return;
  std::int8_t numbers[kPlanes][kStep];
  Planes here;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    here[p] = numbers[p];
    write(numbers[p], read_first(planes[p] + i, n - i, splat_byte(0)));
  }
  next(here, read<I8>(levels + i), counts, i);
  for (std::size_t p = 0; p < kPlanes; ++p) {
    write_first(planes[p] + i, read<I8>(numbers[p]), n - i);
  }
}

void latent_to_trits(std::int8_t* trits, const std::int8_t* codes, int threshold, std::int64_t n) {
  const I8 up(static_cast<std::int8_t>(threshold)), down(static_cast<std::int8_t>(-threshold));
  const auto trits_of = [&](const I8& code) { return one_if(code > up) - one_if(code < down); };
  std::int64_t i = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) write(trits + i, trits_of(read<I8>(codes + i)));
  if (i == n) return;
  write_first(trits + i, trits_of(read_first(codes + i, n - i, I8(std::int8_t{0}))), n - i);
}

template <typename Rule>
struct DescendLatent {
  explicit DescendLatent(const Rule& rule_) : rule(rule_) {}

  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 1>& at, const I8& levels,
                                         ByteCounts& counts, std::int64_t /*i*/) const {
    write(at[0], rule(read<I8>(at[0]), levels, counts));
  }

  Rule rule;
};

FlipCounts descend_latent(std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                          int threshold, int hysteresis) {
  return with_byte_rule(threshold, hysteresis, [&](const auto& rule) {
    const DescendLatent next(rule);
    ByteCounts counts;
    for_each_levels(
        rows, [&](std::int64_t r, std::int64_t col, std::int64_t n, const std::int8_t* levels) {
          const std::array<std::int8_t*, 1> row{codes + r * ld + col};
          ByteCounts so_far = counts;
          for_each_byte_vector(row, levels, n, next, so_far);
          counts = so_far;
        });
    return counts.total();
  });
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
