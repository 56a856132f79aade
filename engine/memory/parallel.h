// The one OpenMP wrapper.
//
// Work is cut into units by the caller, never by the number of threads; a unit computes the same
// thing whichever thread runs it, and sums are joined in unit order. So results do not depend on
// the number of threads, bit for bit. Only parallel_shares() cuts by that number, for results that
// cannot depend on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tritgrad {

// Sets the threads that are used from now on, at least 1. set_thread_count(0) restores the default
// (all cores).
void set_thread_count(int threads);
int thread_count();

namespace detail {
void run_units(std::int64_t units, void (*body)(void* context, std::int64_t unit), void* context);
}

// Calls body(unit) for unit = 0 .. units-1, statically divided among threads. An exception thrown
// by a body is rethrown here after all threads have finished (the one of the lowest unit). Nested
// calls run on the calling thread.
template <typename Body>
void parallel_for(std::int64_t units, Body&& body) {
  detail::run_units(
      units,
      [](void* context, std::int64_t unit) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(unit);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Calls body(begin, end) over [0, n) cut into pieces of `grain` (the last one may be shorter).
template <typename Body>
void parallel_ranges(std::int64_t n, std::int64_t grain, Body&& body) {
  grain = std::max<std::int64_t>(grain, 1);
  parallel_for((n + grain - 1) / grain,
               [&](std::int64_t unit) { body(unit * grain, std::min(n, (unit + 1) * grain)); });
}

// Calls body(begin, end) for equal shares of [0, n), one a thread but of at least `least` each (or
// all of n, where that is less). The result of body for one of n must not depend on where shares
// begin.
template <typename Body>
void parallel_shares(std::int64_t n, std::int64_t least, Body&& body) {
  const std::int64_t most = n / std::max<std::int64_t>(least, 1);
  const std::int64_t shares = std::clamp<std::int64_t>(most, 1, thread_count());
  parallel_for(shares,
               [&](std::int64_t share) { body(n * share / shares, n * (share + 1) / shares); });
}

// Returns the sum of body(begin, end) -> double over pieces of [0, n), joined in order. The pieces
// depend on n and grain alone; there are at most 256 of them, so the partial sums live on the
// stack.
template <typename Body>
double parallel_sum(std::int64_t n, std::int64_t grain, Body&& body) {
  constexpr std::int64_t kMaxPieces = 256;
  const std::int64_t piece = std::max({std::int64_t{1}, grain, (n + kMaxPieces - 1) / kMaxPieces});
  double partial[kMaxPieces] = {};
  parallel_ranges(n, piece, [&](std::int64_t begin, std::int64_t end) {
    partial[begin / piece] = body(begin, end);
  });
  double total = 0.0;
  for (double value : partial) total += value;
  return total;
}

// While it lives, OpenMP code of other libraries that the calling thread enters runs on this thread
// alone.
class OnThisThread {
 public:
  OnThisThread();
  ~OnThisThread();
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;

 private:
  int threads_before_;
};

}  // namespace tritgrad
