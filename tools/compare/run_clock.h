// How far a list of comparisons is, and how long the rest will take.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tritgrad {

struct ExpectedWork {
  int runs = 0;
  double epochs = 0;  // of all runs together; those that choose learning rates may be shorter
  double work = 0;    // of an epoch, in any unit that is the same for all comparisons
};

class RunClock {
 public:
  // One comparison more.
  void expect(const ExpectedWork& work);
  // A run of comparison `which` (from 0) of so many epochs ended after so many seconds, today or
  // when it was made.
  void finished(std::size_t which, int epochs, double seconds);

  // The mean epoch of a comparison's own runs for what is left of it; until it has any, its work at
  // the speed of those before it. Nothing before the first run.
  std::optional<double> seconds_left() const;
  std::string text() const;  // "12/45, about 1:02:03 left"

 private:
  struct Share {
    ExpectedWork expected;
    int runs = 0;  // these three: done
    double epochs = 0.0;
    double seconds = 0.0;
  };
  std::vector<Share> shares_;
};

}  // namespace tritgrad
