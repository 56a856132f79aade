// Wall time.
#pragma once

#include <chrono>

namespace tritgrad {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the result of body(); the time it takes is added to *seconds, unless that is null.
template <typename Body>
auto timed(double* seconds, const Body& body) {
  struct Sum {
    double* seconds;
    Clock::time_point start;
    ~Sum() { *seconds += seconds_since(start); }
  };
  if (seconds == nullptr) return body();
  const Sum sum{seconds, Clock::now()};
  return body();
}

}  // namespace tritgrad
