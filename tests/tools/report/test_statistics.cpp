// Student's t and Welch's interval against tables, published results and numbers worked out by
// hand.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/check.h"
#include "tools/report/statistics.h"

namespace tritgrad::test::test_statistics {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

TEST_CASE("welch: quantiles of t are those of the tables") {
  struct Row {
    double probability, freedom, t;
  };
  // Abramowitz and Stegun, table 26.10, printed to three decimals: half a unit of the last is 5e-4.
  for (const Row& row :
       {Row{0.975, 1, 12.706}, Row{0.975, 2, 4.303}, Row{0.975, 3, 3.182}, Row{0.975, 4, 2.776},
        Row{0.975, 10, 2.228}, Row{0.975, 30, 2.042}, Row{0.975, 120, 1.980}, Row{0.95, 1, 6.314},
        Row{0.95, 5, 2.015}, Row{0.95, 20, 1.725}, Row{0.995, 2, 9.925}, Row{0.995, 8, 3.355}}) {
    CAPTURE(row.probability);
    CAPTURE(row.freedom);
    CHECK(std::abs(t_quantile(row.probability, row.freedom) - row.t) <= 5e-4);
    CHECK(t_quantile(1.0 - row.probability, row.freedom) ==
          doctest::Approx(-t_quantile(row.probability, row.freedom)).epsilon(1e-10));
  }
}

TEST_CASE("welch: quantiles of t where there is a closed form") {
  for (const double p : {0.51, 0.6, 0.9, 0.975, 0.9999}) {
    CAPTURE(p);
    // One degree of freedom is Cauchy's distribution, two have t = x sqrt(2 / (1 - x^2)), x = 2p
    // - 1.
    const double x = 2.0 * p - 1.0;
    CHECK(t_quantile(p, 1) == doctest::Approx(std::tan(kPi * (p - 0.5))).epsilon(1e-9));
    CHECK(t_quantile(p, 2) == doctest::Approx(x * std::sqrt(2.0 / (1.0 - x * x))).epsilon(1e-9));
  }
  CHECK(t_quantile(0.5, 7) == doctest::Approx(0.0));
  // With many degrees it is the normal distribution's 1.959964, larger by (z^3 + z) / (4 n).
  CHECK(std::abs(t_quantile(0.975, 1e6) - 1.959964) < 4e-6);
  CHECK(t_quantile(0.975, 2.5) < t_quantile(0.975, 2.4));
  CHECK_THROWS_AS(t_quantile(1.0, 3), Error);
  CHECK_THROWS_AS(t_quantile(0.9, 0), Error);
}

TEST_CASE("welch: the interval of a worked example") {
  // {98, 99, 100} and {95, 97, 99}: means 99 and 97, deviations 1 and 2. Variances of the means
  // 1/3 and 4/3, their sum 5/3; degrees (5/3)^2 / ((1/9)/2 + (16/9)/2) = (25/9) / (17/18) = 50/17.
  const auto interval = welch_interval({99, 1, 3}, {97, 2, 3});
  REQUIRE(interval);
  const double half = t_quantile(0.975, 50.0 / 17.0) * std::sqrt(5.0 / 3.0);
  CHECK(interval->low == doctest::Approx(2.0 - half));
  CHECK(interval->high == doctest::Approx(2.0 + half));
  // Between the tables' 3.182 (three degrees) and 4.303 (two), much nearer to the first.
  CHECK(half / std::sqrt(5.0 / 3.0) > 3.182);
  CHECK(half / std::sqrt(5.0 / 3.0) < 3.3);
  CHECK(interval->contains(0.0));
  // Equal deviations and counts: 2 (n - 1) degrees, here four, t = 2.776.
  const auto equal = welch_interval({5, 1, 3}, {0, 1, 3});
  CHECK(std::abs(equal->high - 5.0 - 2.776 * std::sqrt(2.0 / 3.0)) < 5e-4);
  CHECK_FALSE(equal->contains(0.0));
  // One that does not scatter leaves the degrees of the other.
  const auto one = welch_interval({1, 0, 5}, {0, 1, 3});
  CHECK(one->high == doctest::Approx(1.0 + t_quantile(0.975, 2) * std::sqrt(1.0 / 3.0)));
}

TEST_CASE("welch: no interval from one value, or from values that are all the same") {
  CHECK_FALSE(welch_interval({1, 0, 1}, {0, 1, 3}));
  CHECK_FALSE(welch_interval({1, 1, 3}, {0, 0, 1}));
  CHECK_FALSE(welch_interval({1, 0, 3}, {0, 0, 3}));
}

TEST_CASE("welch: the published interval of Student's sleep data") {
  // Hours of sleep gained under two drugs (Student 1908, Biometrika 6), data set `sleep` of R. The
  // documentation of R's t.test gives the interval -3.3654832 .. 0.2054832 with 17.776 degrees of
  // freedom; integrating the density of t by Simpson's rule gives the same digits.
  const std::vector<double> first = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> second = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const auto moments = [](const std::vector<double>& sample) {
    SampleMoments of{0.0, 0.0, static_cast<int>(sample.size())};
    for (const double value : sample) of.mean += value / of.count;
    for (const double value : sample) of.deviation += std::pow(value - of.mean, 2);
    of.deviation = std::sqrt(of.deviation / (of.count - 1));
    return of;
  };
  const auto interval = welch_interval(moments(first), moments(second));
  REQUIRE(interval);
  CHECK(std::abs(interval->low - -3.3654832) < 1e-7);  // printed to seven decimals
  CHECK(std::abs(interval->high - 0.2054832) < 1e-7);
}

TEST_CASE("median: the middle, or the mean of both middles; what is not finite is largest") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(median({4.0, 1.0, 2.0, 3.0}) == 2.5);
  CHECK(std::isinf(median({kNan, kNan, 1.0})));
  CHECK(std::isnan(median({})));
}

}  // namespace tritgrad::test::test_statistics
