// How far a list of comparisons is, and how long the rest will take.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tritgrad {

class RunClock {
 public:
  // One comparison more: how many runs it has, and the work of one, in any unit that is the same
  // for all comparisons.
  void expect(int runs, double work);
  // A run of comparison `which` (from 0) ended after so many seconds, today or when it was made.
  void finished(std::size_t which, double seconds);

  // The mean of a comparison's own runs for what is left of it; until it has any, its work at the
  // speed of those before it. Nothing before the first run.
  std::optional<double> seconds_left() const;
  std::string text() const;  // "12/45, about 1:02:03 left"

 private:
  struct Share {
    int runs;
    double work;
    int done = 0;
    double seconds = 0.0;
  };
  std::vector<Share> shares_;
};

}  // namespace tritgrad
