#include "tools/compare/run_clock.h"

#include <fmt/format.h>

#include "tools/numbers.h"

namespace tritgrad {

void RunClock::expect(int runs, double work) { shares_.push_back({runs, work}); }

void RunClock::finished(std::size_t which, double seconds) {
  ++shares_.at(which).done;
  shares_.at(which).seconds += seconds;
}

std::optional<double> RunClock::seconds_left() const {
  double seconds = 0.0, work = 0.0;
  for (const Share& share : shares_) {
    seconds += share.seconds;
    work += share.done * share.work;
  }
  if (work <= 0.0) return std::nullopt;
  double left = 0.0;
  for (const Share& share : shares_) {
    const double each = share.done > 0 ? share.seconds / share.done : share.work * seconds / work;
    left += each * (share.runs - share.done);
  }
  return left;
}

std::string RunClock::text() const {
  int done = 0, runs = 0;
  for (const Share& share : shares_) {
    done += share.done;
    runs += share.runs;
  }
  const std::optional<double> left = seconds_left();
  const std::string count = fmt::format("{}/{}", done, runs);
  return left && done < runs ? count + ", about " + duration(*left) + " left" : count;
}

}  // namespace tritgrad
