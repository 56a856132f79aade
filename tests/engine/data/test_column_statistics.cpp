#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "engine/data/column_statistics.h"

namespace tritgrad::test::test_column_statistics {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// 1000 numbers in [0, 1) that Python makes with the same bits.
std::vector<double> uniform() {
  std::vector<double> numbers;
  std::uint64_t state = 12345;
  for (int i = 0; i < 1000; ++i) {
    state = (state * 1103515245 + 12345) % 2147483648;
    numbers.push_back(static_cast<double>(state) / 2147483648.0);
  }
  return numbers;
}

std::vector<double> mapped(const std::function<double(int, double)>& of) {
  std::vector<double> numbers = uniform();
  for (int i = 0; double& x : numbers) x = of(i++, x);
  return numbers;
}

void check_near(double found, double wanted) {
  CHECK(std::abs(found - wanted) <= 1e-12 * std::abs(wanted));
}

}  // namespace

TEST_CASE("column statistics: means and deviations are NumPy's to 1e-12") {
  struct Golden {
    std::vector<double> numbers;
    double mean, deviation;  // numpy.nanmean and nanstd of NumPy 1.24.2
  };
  const Golden goldens[] = {
      {uniform(), 0.49691074977628885, 0.2871389245246942},
      {mapped([](int, double x) { return 1700000000 + 10 * x; }), 1700000004.9691074,
       2.8713892471636164},
      {mapped([](int i, double x) { return std::ldexp(i % 2 == 0 ? x : -x, i % 40); }),
       -4755006124.663033, 60093574781.62965},
      {mapped([](int i, double x) { return i % 7 == 3 ? kNan : x; }), 0.49668453034239546,
       0.28612914057766464},
  };
  for (const Golden& golden : goldens) {
    const ColumnStatistics found = column_statistics(golden.numbers);
    check_near(found.mean, golden.mean);
    check_near(found.deviation, golden.deviation);
  }
  // NumPy is wrong by 6e-5 here, as it rounds the mean to a multiple of 0.125; this is exact
  // arithmetic, rounded once.
  check_near(column_statistics(mapped([](int, double x) { return 1e15 + 8 * x; })).deviation,
             2.2957201892870134);
  CHECK(column_statistics(std::vector<double>{kNan}).count == 0);
  CHECK(column_statistics(std::vector<double>(1000, 0.1)).deviation < 1e-16);
}

TEST_CASE("column statistics: an offset is found where fp32 would lose what tells numbers apart") {
  const auto offset = [](const std::vector<double>& numbers) {
    return offset_of(column_statistics(numbers));
  };
  CHECK(offset({1, 2, 3}) == 0.0);
  CHECK(offset({1700000000, 1700000000}) == 0.0);  // constant
  // The mean is 1,700,000,005, the deviation 5: a multiple of 8.
  CHECK(offset({1700000000, 1700000010}) == 1700000008.0);
  CHECK(offset({-1700000000, -1700000010}) == -1700000008.0);
  CHECK(offset({4000, 4002}) == 0.0);
  CHECK(offset({5000, 5002}) == 5001.0);
  CHECK(collapses(std::vector<double>{1700000000, 1700000010}, 0.0));
  CHECK_FALSE(collapses(std::vector<double>{1700000000, 1700000010}, 1700000008.0));
  CHECK_FALSE(collapses(uniform(), 0.0));
  // No offset serves two clusters.
  CHECK(collapses(std::vector<double>{0, 1e9, 1e9 + 10}, 0.0));
}

TEST_CASE("column statistics: the most frequent number, the smallest of equals") {
  CHECK(most_frequent(std::vector<double>{3, 1, 3, kNan, kNan, kNan, 1, 2}) == 1.0);
  CHECK(most_frequent(std::vector<double>{2, 0.0, -0.0, kNan}) == 0.0);
}

}  // namespace tritgrad::test::test_column_statistics
