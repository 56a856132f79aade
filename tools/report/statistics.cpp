#include "tools/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.h"

namespace tritgrad {
namespace {

// Computes the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's
// method; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  constexpr int kMostTerms = 1000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)), result = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    double change = 1.0;
    for (const double term : {even, odd}) {
      d = 1.0 / away_from_zero(1.0 + term * d);
      c = away_from_zero(1.0 + term / c);
      change = c * d;
      result *= change;
    }
    if (std::abs(change - 1.0) < kEnough) break;
  }
  return result;
}

// Computes I_x(a, b); `rest` is 1 - x, handed over because it may be too small to be subtracted.
double incomplete_beta(double a, double b, double x, double rest) {
  if (x <= 0.0) return 0.0;
  if (rest <= 0.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(rest));
  return x < (a + 1.0) / (a + b + 2.0) ? front * beta_fraction(a, b, x) / a
                                       : 1.0 - front * beta_fraction(b, a, rest) / b;
}

// Computes P(T > t) for t >= 0.
double upper_tail(double t, double freedom) {
  const double sum = freedom + t * t;
  return 0.5 * incomplete_beta(0.5 * freedom, 0.5, freedom / sum, t * t / sum);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  for (double& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || std::isinf(values[middle])) return values[middle];
  return 0.5 * (values[middle - 1] + values[middle]);
}

double t_quantile(double probability, double freedom) {
  check(probability > 0.0 && probability < 1.0 && freedom > 0.0, "t_quantile: probability ",
        probability, " and ", freedom,
        " degrees of freedom; expected one in (0, 1) and one above 0");
  if (probability < 0.5) return -t_quantile(1.0 - probability, freedom);
  const double tail = 1.0 - probability;
  double low = 0.0, high = 1.0;
  while (upper_tail(high, freedom) > tail && high < 1e300) high *= 2.0;
  while (true) {  // halves the interval until no number lies between its ends
    const double middle = low + 0.5 * (high - low);
    if (middle <= low || middle >= high) return middle;
    (upper_tail(middle, freedom) > tail ? low : high) = middle;
  }
}

std::optional<Interval> welch_interval(const SampleMoments& a, const SampleMoments& b,
                                       double confidence) {
  if (a.count < 2 || b.count < 2) return std::nullopt;
  const double va = a.deviation * a.deviation / a.count;
  const double vb = b.deviation * b.deviation / b.count;
  if (!(va + vb > 0.0) || !std::isfinite(va + vb)) return std::nullopt;
  const double freedom =
      (va + vb) * (va + vb) / (va * va / (a.count - 1) + vb * vb / (b.count - 1));
  const double half = t_quantile(0.5 + 0.5 * confidence, freedom) * std::sqrt(va + vb);
  return Interval{a.mean - b.mean - half, a.mean - b.mean + half};
}

}  // namespace tritgrad
