// Integer arithmetic of an accumulator that k weights share, one of them at a time.
//
// The weights are neighbours of a row; beside their trits they have one byte, which holds an
// accumulator A and its owner o, the one of them whose updates A collects. An update by the levels
// x_0 .. x_(k-1):
//
//     1. Where A != 0: A <- A + x_o. Beyond +-L the owner's trit moves that way by one, and A is
//        free; at zero or past it A is free, too.
//     2. A free A goes to the weight with the largest |x_i| whose trit can move that way, and
//        begins with x_i; of equal ones to the first from number `turn` on, cyclically. An owner
//        that has just lost A is passed over. If no weight asks for it, A stays free.
//
// Stochastic rounding to a whole flip decides at once, by a coin. Here the updates that follow
// decide: while they are chance, A, begun at x, reaches L + 1 before 0 with the probability
// x / (L + 1) if steps are of one level (gambler's ruin; larger ones overshoot, and what a flip
// leaves over is dropped); a gradient that lasts makes the trit move for certain. Updates of the
// others are dropped while A has an owner, so the rate that each weight sees falls with k.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/formats/flips.h"

namespace tritgrad {

// The byte is k A + o; A = 0 has o = 0. k is 4, 8 or 16.
struct SharedAccumulator {
  int accumulator = 0;
  int owner = 0;
  friend bool operator==(const SharedAccumulator&, const SharedAccumulator&) = default;
};

// Returns L, the largest |A|: 31, 15 and 7 where 4, 8 and 16 weights share one.
constexpr int shared_threshold(int sharing) { return 128 / sharing - 1; }

constexpr std::int8_t pack_shared(const SharedAccumulator& state, int sharing) {
  return static_cast<std::int8_t>(state.accumulator * sharing + state.owner);
}
// Patterns that no update writes are read as well: A below -L as -L.
constexpr SharedAccumulator unpack_shared(std::int8_t byte, int sharing) {
  const int owner = byte & (sharing - 1);
  return {std::max((byte - owner) / sharing, -shared_threshold(sharing)), owner};
}

// Whether the trit can move in the direction of these levels.
constexpr bool can_follow(int trit, int levels) {
  return levels > 0 ? trit < 1 : levels < 0 && trit > -1;
}

// Takes step 2 for the n <= k weights of a group, all but number `passed_over`.
template <typename Levels>
constexpr SharedAccumulator claim_shared(const std::int8_t* trits, const Levels* levels, int n,
                                         int sharing, int turn, int passed_over) {
  SharedAccumulator claimed;
  int largest = 0;
  for (int nth = 0; nth < sharing; ++nth) {
    const int i = (turn + nth) & (sharing - 1);
    if (i >= n || i == passed_over || !can_follow(trits[i], levels[i])) continue;
    const int magnitude = levels[i] < 0 ? -levels[i] : levels[i];
    if (magnitude <= largest) continue;
    largest = magnitude;
    claimed = {levels[i], i};
  }
  return claimed;
}

// Makes the whole update of a group; |levels| <= L. An owner that the group has not, at the end of
// a row, has levels of zero.
template <typename Levels>
constexpr std::int8_t update_shared(std::int8_t byte, std::int8_t* trits, const Levels* levels,
                                    int n, int sharing, int turn, FlipCounts& counts) {
  constexpr int kNone = -1;
  const int threshold = shared_threshold(sharing);
  const SharedAccumulator before = unpack_shared(byte, sharing);
  if (before.accumulator == 0) {
    return pack_shared(claim_shared(trits, levels, n, sharing, turn, kNone), sharing);
  }
  const int sum = before.accumulator + (before.owner < n ? int{levels[before.owner]} : 0);
  const bool passed = sum > threshold || sum < -threshold;
  if (!passed && sum != 0 && (sum > 0) == (before.accumulator > 0)) {
    return pack_shared({sum, before.owner}, sharing);
  }
  const SharedAccumulator next = claim_shared(trits, levels, n, sharing, turn, before.owner);
  if (passed) {
    std::int8_t& trit = trits[before.owner];
    // Only a state that no update makes has an owner that cannot move.
    const bool moves = can_follow(trit, sum);
    ++(moves ? counts.flips : counts.rail_flips);
    if (moves) trit = static_cast<std::int8_t>(trit + (sum > 0 ? 1 : -1));
  }
  return pack_shared(next, sharing);
}

}  // namespace tritgrad
