// How long the rest of the comparisons will take.
#include <doctest/doctest.h>

#include "tools/compare/run_clock.h"

namespace tritgrad::test::test_run_clock {

TEST_CASE("run clock: each comparison by its own runs, or by work at the speed so far") {
  RunClock clock;
  clock.expect({4, 4 * 5, 10});
  clock.expect({2, 2 * 5, 30});
  CHECK_FALSE(clock.seconds_left());
  CHECK(clock.text() == "0/6");
  clock.finished(0, 5, 2.0);
  // Three more of 2 s, then two of three times the work.
  CHECK(*clock.seconds_left() == doctest::Approx(3 * 2.0 + 2 * 6.0));
  CHECK(clock.text() == "1/6, about 0:18 left");
  for (int i = 0; i < 3; ++i) clock.finished(0, 5, 2.0);
  clock.finished(1, 5, 100.0);
  CHECK(*clock.seconds_left() == doctest::Approx(100.0));
  clock.finished(1, 5, 50.0);
  CHECK(clock.text() == "6/6");
}

TEST_CASE("run clock: a short trial says what a whole run will take") {
  RunClock clock;
  clock.expect({3, 1 + 2 * 10, 1});
  clock.finished(0, 1, 2.0);
  CHECK(*clock.seconds_left() == doctest::Approx(2 * 10 * 2.0));
}

}  // namespace tritgrad::test::test_run_clock
