// Integer arithmetic of a trit with an accumulator: what happens when evidence adds up.
//
// A weight is a trit T in {-1, 0, 1} and an accumulator A. An update adds `levels` to A; when A
// passes the threshold, T moves. With carry, (T, A) is one fixed-point number c = K T + A with K =
// 2 threshold + 1 levels per trit, and nothing is lost; with reset, A is a vote counter that starts
// again at zero. Source: SignSGD flip votes, corrected sign and transitions; latent codes of one
// byte per weight.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tritgrad {

enum class OnFlip { kCarry, kReset };
enum class Transition {
  kStepOneTrit,  // -1 <-> 0 <-> +1, zero stays reachable
  kSetSign,      // straight to +1 or -1: binary after a weight's first flip, zero is lost
};

struct FlipPolicy {
  int threshold = 42;  // flip when |A| > threshold; in [0, 126] so that the crossing fits int8
  OnFlip on_flip = OnFlip::kCarry;
  Transition transition = Transition::kStepOneTrit;
  int hysteresis = 0;  // levels added in the direction of a flip (carry only), against chatter

  // Returns the levels of one trit: how far A must travel between two flips in the same direction.
  int levels_per_trit() const {
    return on_flip == OnFlip::kCarry ? 2 * threshold + 1 : threshold + 1;
  }
  friend bool operator==(const FlipPolicy&, const FlipPolicy&) = default;
};

struct FlipCounts {
  std::int64_t flips = 0;       // trits that changed
  std::int64_t rail_flips = 0;  // threshold passed while T was already at that rail (no change)

  FlipCounts& operator+=(const FlipCounts& other) {
    flips += other.flips;
    rail_flips += other.rail_flips;
    return *this;
  }
};

struct TritState {
  int trit = 0;
  int accumulator = 0;
  friend bool operator==(const TritState&, const TritState&) = default;
};

// Returns the nearest trit of fixed-point code c with K levels per trit, and what is left of it.
// |c| <= K + (K - 1) / 2, so the remainder is within +-(K - 1) / 2.
constexpr TritState split_code(int code, int threshold) {
  const int trit = (code > threshold) - (code < -threshold);
  return {trit, code - trit * (2 * threshold + 1)};
}

// Adds `levels` to the accumulator and moves the trit when the threshold is passed.
// Carry: saturates at T = +-1, A = +-threshold (the rails), any |levels| in one go, at most two
// trits; a state beyond the rails, which no update writes, counts as one on them. Reset: A
// saturates at +-127 before the test, one transition per call, A = 0 after it; at a rail the
// accumulator is reset too, because a full counter would delay the reversal by its whole height.
constexpr TritState accumulate(TritState state, int levels, const FlipPolicy& policy,
                               FlipCounts& counts) {
  if (policy.on_flip == OnFlip::kCarry) {
    const int k = policy.levels_per_trit();
    const int limit = k + policy.threshold;
    const int wanted = std::clamp(state.trit * k + state.accumulator, -limit, limit) + levels;
    TritState next = split_code(std::clamp(wanted, -limit, limit), policy.threshold);
    if (policy.transition == Transition::kSetSign && next.trit == 0 && state.trit != 0) {
      // The binary rule has no way back to zero: crossing the threshold means the other sign.
      next = {-state.trit, 0};
    }
    if (next.trit != state.trit) {
      ++counts.flips;
      const int pushed =
          next.trit * k + next.accumulator + policy.hysteresis * (next.trit - state.trit);
      const int trit = next.trit;
      next.accumulator = std::clamp(std::clamp(pushed, -limit, limit) - trit * k, -policy.threshold,
                                    policy.threshold);
    } else if (wanted > limit || wanted < -limit) {
      ++counts.rail_flips;
    }
    return next;
  }
  const int sum = std::clamp(state.accumulator + levels, -127, 127);
  // No vote, no flip: a threshold that has just fallen below the counter waits for evidence.
  const bool passed = levels != 0 && (sum < -policy.threshold || sum > policy.threshold);
  if (!passed) return {state.trit, sum};
  const int direction = sum > 0 ? 1 : -1;
  const int trit = policy.transition == Transition::kSetSign
                       ? direction
                       : std::clamp(state.trit + direction, -1, 1);
  ++(trit == state.trit ? counts.rail_flips : counts.flips);
  return {trit, 0};
}

// Returns the threshold at learning rate lr (trits per vote). With reset, one vote is worth 1 /
// (threshold + 1) trits, so a falling lr raises the threshold, up to 126; below lr = 1/127 votes
// must be thinned. With carry the threshold is the resolution of the fixed-point weight and stays.
inline int threshold_for(const FlipPolicy& policy, float lr) {
  constexpr int kHighest = 126;
  if (policy.on_flip == OnFlip::kCarry) return policy.threshold;
  if (!(lr > 1.0f / (kHighest + 1))) return kHighest;
  return std::max(policy.threshold, static_cast<int>(1.0 / static_cast<double>(lr)) - 1);
}

}  // namespace tritgrad
