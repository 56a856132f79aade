#include "engine/data/column_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tritgrad {
namespace {

// Neumaier's sum: what an addition rounds away is added up beside.
class CompensatedSum {
 public:
  void add(double x) {
    const double sum = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0, lost_ = 0.0;
};

std::vector<double> sorted(std::span<const double> numbers) {
  std::vector<double> present;
  for (double x : numbers) {
    if (!std::isnan(x)) present.push_back(x + 0.0);  // -0 is 0
  }
  std::sort(present.begin(), present.end());
  return present;
}

}  // namespace

ColumnStatistics column_statistics(std::span<const double> numbers) {
  ColumnStatistics statistics;
  CompensatedSum sum;
  for (double x : numbers) {
    if (std::isnan(x)) continue;
    if (statistics.count++ == 0) statistics.low = statistics.high = x;
    statistics.low = std::min(statistics.low, x);
    statistics.high = std::max(statistics.high, x);
    sum.add(x);
  }
  if (statistics.count == 0) return statistics;
  const auto count = static_cast<double>(statistics.count);
  statistics.mean = sum.value() / count;
  CompensatedSum squares, deviations;
  for (double x : numbers) {
    if (std::isnan(x)) continue;
    const double d = x - statistics.mean;
    squares.add(d * d);
    deviations.add(d);
  }
  // The mean is rounded; what that adds to the squares is known.
  const double error = deviations.value() / count;
  statistics.deviation = std::sqrt(std::max(0.0, squares.value() / count - error * error));
  return statistics;
}

double offset_of(const ColumnStatistics& statistics) {
  constexpr double kFar = 4096.0;
  if (statistics.low == statistics.high || !(statistics.deviation > 0.0)) return 0.0;
  if (!(std::abs(statistics.mean) > kFar * statistics.deviation)) return 0.0;
  // A multiple of a power of two that is no less than the deviation: whole numbers stay whole.
  const double unit = std::exp2(std::ceil(std::log2(statistics.deviation)));
  return std::nearbyint(statistics.mean / unit) * unit;
}

double most_frequent(std::span<const double> numbers) {
  const std::vector<double> present = sorted(numbers);
  double best = present.front();
  for (std::size_t begin = 0, most = 0; begin < present.size();) {
    std::size_t end = begin;
    while (end < present.size() && present[end] == present[begin]) ++end;
    if (end - begin > most) {
      most = end - begin;
      best = present[begin];
    }
    begin = end;
  }
  return best;
}

bool collapses(std::span<const double> numbers, double offset) {
  const auto as_float = [&](double x) { return static_cast<float>(x - offset); };
  const bool exact = std::all_of(numbers.begin(), numbers.end(), [&](double x) {
    return std::isnan(x) || static_cast<double>(as_float(x)) == x - offset;
  });
  if (exact && offset == 0.0) return false;
  const std::vector<double> present = sorted(numbers);
  std::size_t doubles = 0, floats = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    doubles += i == 0 || present[i] != present[i - 1];
    floats += i == 0 || as_float(present[i]) != as_float(present[i - 1]);
  }
  return 10 * floats <= 9 * doubles;
}

bool exceed_doubles(const ColumnStatistics& statistics) {
  const double size = std::max(std::abs(statistics.low), std::abs(statistics.high));
  return statistics.count > 0 && size >= 0x1p53 &&
         statistics.high - statistics.low < 0x1p-40 * size;
}

std::vector<std::string> warnings_of_losses(std::span<const double> numbers,
                                            const ColumnStatistics& statistics, double offset,
                                            const std::string& column) {
  std::vector<std::string> warnings;
  if (collapses(numbers, offset)) {
    warnings.push_back(column +
                       " that differ become the same in fp32; subtract what they have in common, "
                       "or split the column");
  }
  if (exceed_doubles(statistics)) {
    warnings.push_back(column +
                       " are beyond 2^53 and differ in digits that doubles do not keep; subtract "
                       "what they have in common before the file is written");
  }
  return warnings;
}

}  // namespace tritgrad
