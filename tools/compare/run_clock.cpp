#include "tools/compare/run_clock.h"

#include <fmt/format.h>

#include "tools/report/numbers.h"

namespace tritgrad {

void RunClock::expect(const ExpectedWork& work) { shares_.push_back({work}); }

void RunClock::finished(std::size_t which, int epochs, double seconds) {
  Share& share = shares_.at(which);
  ++share.runs;
  share.epochs += epochs;
  share.seconds += seconds;
}

std::optional<double> RunClock::seconds_left() const {
  double seconds = 0.0, work = 0.0;
  for (const Share& share : shares_) {
    seconds += share.seconds;
    work += share.epochs * share.expected.work;
  }
  if (work <= 0.0) return std::nullopt;
  double left = 0.0;
  for (const Share& share : shares_) {
    const double each =
        share.epochs > 0 ? share.seconds / share.epochs : share.expected.work * seconds / work;
    left += each * (share.expected.epochs - share.epochs);
  }
  return left;
}

std::string RunClock::text() const {
  int done = 0, runs = 0;
  for (const Share& share : shares_) {
    done += share.runs;
    runs += share.expected.runs;
  }
  const std::optional<double> left = seconds_left();
  const std::string count = fmt::format("{}/{}", done, runs);
  return left && done < runs ? count + ", about " + duration(*left) + " left" : count;
}

}  // namespace tritgrad
