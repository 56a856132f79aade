#include "engine/data/targets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/check.h"
#include "engine/data/column_statistics.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

std::size_t count_different(std::span<const double> numbers) {
  std::vector<double> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  return static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

bool are_whole(std::span<const double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == std::floor(x); });
}

// The ends of the middle 90 % of numbers.
struct MiddleRange {
  double low, high;
  // Returns how far outside a number is, in widths of the range, which is not 0.
  double distance(double x) const { return std::max(low - x, x - high) / (high - low); }
};

MiddleRange middle_range(std::span<const double> numbers) {
  std::vector<double> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() / 20;
  return {sorted[cut], sorted[sorted.size() - 1 - cut]};
}

}  // namespace

bool look_measured(std::span<const double> labels) {
  constexpr std::size_t kMostClasses = 20;  // that nobody has to ask for
  constexpr std::size_t kRowsOfClass = 10;
  const std::size_t different = count_different(labels);
  if (different <= kMostClasses) return false;
  return !are_whole(labels) || labels.size() < kRowsOfClass * different;
}

std::string note_of_measured(const std::string& label, std::span<const double> labels) {
  return concat("the label, ", label, ", has ", count_different(labels), " different numbers in ",
                counted(std::ssize(labels), "row"),
                " and is predicted as a number; if they are classes, say --task classify");
}

std::string note_of_classes(const std::string& label, std::span<const double> labels) {
  constexpr std::size_t kUsualClasses = 10;  // digits, ratings
  const std::size_t different = count_different(labels);
  if (different <= kUsualClasses && are_whole(labels)) return "";
  return concat("the label, ", label, ", has ", different, " different numbers in ",
                counted(std::ssize(labels), "row"),
                ", which are taken for classes; to predict it as a number, say --task regress");
}

std::string warning_of_outliers(std::span<const double> targets,
                                const std::function<std::string(std::int64_t row)>& place) {
  constexpr std::size_t kFewest = 20;
  constexpr double kFar = 10.0;
  if (targets.size() < kFewest) return "";
  const MiddleRange range = middle_range(targets);
  if (range.low == range.high) return "";
  std::int64_t far = 0;
  std::size_t farthest = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const double distance = range.distance(targets[row]);
    if (distance > kFar) ++far;
    if (distance > range.distance(targets[farthest])) farthest = row;
  }
  if (far == 0) return "";
  return concat(counted(far, "label"), far == 1 ? " lies" : " lie", " far outside ", range.low,
                " to ", range.high, ", where 90 % of them are: that of ",
                place(static_cast<std::int64_t>(farthest)), " is ", targets[farthest],
                "; as errors are squared, few such rows outweigh all others: mend or remove them, "
                "or predict the logarithm");
}

bool is_usable_target(double target) {
  return std::abs(target) <= static_cast<double>(std::numeric_limits<float>::max());
}

void check_targets(const Dataset& dataset, const std::string& where, bool to_score,
                   const std::string& advice) {
  const DataVector<double>& targets = dataset.targets;
  const bool differ = std::any_of(targets.begin(), targets.end(),
                                  [&](double target) { return target != targets.front(); });
  check(to_score || differ, where, ": ",
        targets.size() == 1 ? "the one row has" : concat("all ", targets.size(), " rows have"),
        " the label ", targets.front(), ", at least two different numbers are needed; ", advice);
}

TargetScale TargetScale::fit(const Dataset& dataset, std::span<const std::int32_t> rows) {
  if (!dataset.is_regression()) return {};
  std::vector<double> targets;
  for (const std::int32_t row : rows) {
    targets.push_back(dataset.targets[static_cast<std::size_t>(row)]);
  }
  const ColumnStatistics statistics = column_statistics(targets);
  const std::string whose =
      concat(dataset.name, ": the targets of the ", counted(std::ssize(rows), "training row"));
  check(statistics.low < statistics.high, whose, " are all ", statistics.low,
        ", different numbers are needed; give more rows, or other labels");
  check(statistics.deviation > 0.0, whose, " differ by ", statistics.high - statistics.low,
        " at most, so little that the square is 0 in double precision, a deviation above 0 is "
        "needed; give the labels in a smaller unit, as larger numbers");
  return {statistics.mean, statistics.deviation};
}

}  // namespace tritgrad
