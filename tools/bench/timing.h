// How work is timed.
#pragma once

#include "engine/clock.h"

namespace tritgrad {

// Seconds of one call of body(): after a first call that does not count, as many as take a few
// milliseconds together, so that the clock and its interruptions do not matter.
template <typename Body>
double seconds_per_call(const Body& body) {
  constexpr double kShortest = 5e-3;
  body();
  for (int calls = 1;; calls *= 2) {
    const Clock::time_point start = Clock::now();
    for (int call = 0; call < calls; ++call) body();
    const double seconds = seconds_since(start);
    if (seconds >= kShortest) return seconds / calls;
  }
}

}  // namespace tritgrad
