// Statistics of few measurements: the median, and the interval of a difference of means.
#pragma once

#include <optional>
#include <vector>

namespace tritgrad {

// Returns the middle value, or the mean of the two in the middle; NaN for none. Values that are not
// finite count as larger than all others. Times scatter to one side, so that it says more than a
// mean.
double median(std::vector<double> values);

struct SampleMoments {
  double mean = 0;
  double deviation = 0;  // of the sample: divided by count - 1
  int count = 0;
};

struct Interval {
  double low = 0;
  double high = 0;

  bool contains(double value) const { return low <= value && value <= high; }
};

// Returns the value that Student's t with `freedom` degrees (> 0, not necessarily whole) stays
// below with `probability`, in (0, 1). To 10 digits where it is below 1e6.
double t_quantile(double probability, double freedom);

// Returns the interval that a - b lies in with `confidence` (Welch 1947; degrees of freedom by
// Satterthwaite), or nothing when a sample has fewer than two values, or when neither scatters:
// then there is no measure of chance.
std::optional<Interval> welch_interval(const SampleMoments& a, const SampleMoments& b,
                                       double confidence = 0.95);

}  // namespace tritgrad
