// Statistics of a column of numbers, in double.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tritgrad {

// NaN takes no part; without other numbers all fields are 0.
struct ColumnStatistics {
  std::int64_t count = 0;
  double mean = 0.0;
  double deviation = 0.0;  // of the population
  double low = 0.0, high = 0.0;
};

// Two passes, whose sums carry what their additions round away.
ColumnStatistics column_statistics(std::span<const double> numbers);

// Returns what is to be subtracted from numbers before they become fp32, so that their differences
// survive: 0 unless they lie more than 4096 deviations from zero, else a round number near their
// mean.
double offset_of(const ColumnStatistics& statistics);

// The most frequent number, the smallest of equals. There is at least one that is not NaN.
double most_frequent(std::span<const double> numbers);

// Says whether the numbers minus the offset, as fp32, have fewer different values, by a tenth or
// more.
bool collapses(std::span<const double> numbers, double offset);

// Returns whether whole numbers are so large, and so near to each other, that those which the file
// tells apart may be the same double: beyond 2^53, in a range of less than 2^-40 of their size.
bool exceed_doubles(const ColumnStatistics& statistics);

// Returns the warnings for numbers, of these statistics, that differ and become the same, either
// way; `column` is where they stand: "t.csv: numbers of column 'time'".
std::vector<std::string> warnings_of_losses(std::span<const double> numbers,
                                            const ColumnStatistics& statistics, double offset,
                                            const std::string& column);

}  // namespace tritgrad
