// Bounds of numeric options: which texts are numbers, and which of them are let in.
#include <doctest/doctest.h>

#include <limits>

#include "tests/support/support_files.h"
#include "tools/cli/common_options.h"

namespace tritgrad::test::test_common_options {
namespace {

template <typename Number>
std::string verdict(Number low, Number high, std::string text) {
  return in_range(low, high)(text);
}

TEST_CASE("bounds of options: whole numbers, both ends included") {
  for (const char* good : {"1", "9", "+5"}) CHECK(verdict(1, 9, good).empty());
  for (const char* bad : {"0", "10", "-1", "", "+", "+-5", "++5", " 5", "5 ", "5.0", "5e0", "0x5",
                          "05", "99999999999999999999", "nan"}) {
    CAPTURE(bad);
    CHECK(verdict(1, 9, bad) ==
          "'" + std::string(bad) + "' found, a whole number from 1 to 9 expected");
  }
}

TEST_CASE("bounds of options: the ends of wide types") {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  CHECK(verdict<std::uint64_t>(0, most, "18446744073709551615").empty());
  CHECK_FALSE(verdict<std::uint64_t>(0, most, "18446744073709551616").empty());
  CHECK_FALSE(verdict<std::uint64_t>(0, most, "-1").empty());
  CHECK(verdict<std::int64_t>(-5, 1'000'000'000'000, "1000000000000").empty());
  CHECK(verdict<std::int64_t>(-5, 1'000'000'000'000, "-5").empty());
  CHECK_FALSE(verdict<std::int64_t>(-5, 1'000'000'000'000, "-6").empty());
}

TEST_CASE("bounds of options: fractions, both ends included, no NaN") {
  for (const char* good : {"0", "0.9", ".9", "+.5", "9e-1", "-0"}) {
    CAPTURE(good);
    CHECK(verdict(0.0, 0.9, good).empty());
  }
  for (const char* bad : {"0.90000001", "-0.1", "nan", "inf", "0,5", "", "x"}) {
    CAPTURE(bad);
    CHECK(verdict(0.0, 0.9, bad) ==
          "'" + std::string(bad) + "' found, a number from 0 to 0.9 expected");
  }
}

}  // namespace
}  // namespace tritgrad::test::test_common_options
