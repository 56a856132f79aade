#include <doctest/doctest.h>

#include <limits>

#include "engine/check.h"
#include "tools/report/table.h"

namespace tritgrad::test::test_table {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("numbers: bytes change unit before the printed number reaches 1024") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(1.23 * 1024 * 1024) == "1.23 MiB");
  CHECK(human_bytes(1024.0 * 1024.0 - 1.0) == "1.00 MiB");
  CHECK(human_bytes(9.2e18) == "7.98 EiB");
  CHECK(human_bytes(kInfinity) == kMissing);
}

TEST_CASE("numbers: counts keep one decimal and roll over to the next suffix") {
  CHECK(human_count(0) == "0");
  CHECK(human_count(42) == "42");
  CHECK(human_count(3.44) == "3.4");
  CHECK(human_count(668672) == "668.7 k");
  CHECK(human_count(999949) == "999.9 k");
  CHECK(human_count(999960) == "1.0 M");
  CHECK(human_count(7e9) == "7.0 G");
  CHECK(human_count(42100, "") == "42.1k");
  CHECK(human_count(kNan) == kMissing);
}

TEST_CASE("numbers: a sign stands only before a digit other than zero") {
  CHECK(fixed(-0.001, 2) == "0.00");
  CHECK(fixed(-0.3, 2) == "−0.30");
  CHECK(signed_fixed(0.004, 2) == "0.00");
  CHECK(signed_fixed(1.25, 2) == "+1.25");
  CHECK(signed_fixed(-1.25, 2) == "−1.25");
  CHECK(fixed(kNan, 2) == kMissing);
  CHECK(percent(0.98531) == "98.53 %");
  CHECK(percent(1.0, 1) == "100.0 %");
}

TEST_CASE("numbers: significant digits, however large or small the value") {
  CHECK(significant(0, 3) == "0");
  CHECK(significant(0.01234, 3) == "0.0123");
  CHECK(significant(6.314, 3) == "6.31");
  CHECK(significant(63.14, 3) == "63.1");
  CHECK(significant(6314, 3) == "6314");
  CHECK(significant(-0.5, 2) == "−0.50");
  CHECK(significant(1e-300, 3) == "1.00e-300");
  CHECK(significant(1e300, 3) == "1.00e+300");
}

TEST_CASE("numbers: durations as minutes and hours") {
  CHECK(duration(0) == "0:00");
  CHECK(duration(37.4) == "0:37");
  CHECK(duration(59.6) == "1:00");
  CHECK(duration(725) == "12:05");
  CHECK(duration(3723) == "1:02:03");
  CHECK(duration(-1) == kMissing);
  CHECK(duration(kInfinity) == kMissing);
}

TEST_CASE("table: columns are aligned by what is seen, not by bytes") {
  Table table({{"name"}, {"Δ", Align::kRight}});
  table.add_row({"é", "+1.0"});
  table.add_row({"longer", "−12.0"});
  CHECK(table.render() ==
        "name        Δ\n"
        "─────────────\n"
        "é        +1.0\n"
        "longer  −12.0\n");
}

TEST_CASE("table: sections stand alone") {
  Table table({{"layer"}, {"bytes", Align::kRight}});
  table.add_section("hidden layers");
  table.add_row({"w1", "10"});
  CHECK(table.render() ==
        "layer  bytes\n"
        "────────────\n"
        "hidden layers\n"
        "w1        10\n");
}

TEST_CASE("table: a heading spans its group and widens columns too narrow for it") {
  Table wide({{"x"}, {"abcdef", Align::kRight, "gg"}, {"ghijkl", Align::kRight, "gg"}});
  wide.add_row({"1", "2", "3"});
  CHECK(wide.render() ==
        "   ───── gg ─────\n"
        "x  abcdef  ghijkl\n"
        "─────────────────\n"
        "1       2       3\n");
  Table narrow({{"a", Align::kRight, "heading"}, {"b", Align::kRight, "heading"}});
  narrow.add_row({"1", "2"});
  CHECK(narrow.render() ==
        "heading\n"
        "a     b\n"
        "───────\n"
        "1     2\n");
}

TEST_CASE("table: a row with the wrong number of cells is refused with both numbers") {
  Table table({{"a"}, {"b"}});
  CHECK_THROWS_WITH_AS(
      table.add_row({"1"}),
      "Table row has 1 cells but the table has 2 columns; give one cell for each column", Error);
  CHECK_THROWS_AS(table.add_row({"1", "2", "3"}), Error);
  CHECK_THROWS_AS(Table({}), Error);
}

TEST_CASE("table: control characters are shown, not sent") {
  Table table({{"\x1b[1mtitle"}});
  table.add_row({"a\tb\x07"});
  CHECK(table.render() ==
        "?[1mtitle\n"
        "─────────\n"
        "a?b?\n");
}

}  // namespace
}  // namespace tritgrad::test::test_table
