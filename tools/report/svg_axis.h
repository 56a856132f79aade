// Axes map values to positions on paper and have round numbers beside them.
#pragma once

#include <string>
#include <vector>

namespace tritgrad {

struct Tick {
  double value = 0;
  std::string text;
};

struct AxisRange {
  double low = 0;
  double high = 1;
  bool log = false;
  std::vector<Tick> ticks;  // ascending, at least two, all within [low, high]
};

// Returns the axis that holds `values` and begins and ends at a tick. Values that are not finite
// are ignored, and on a log axis those that are not positive. Steps are 1, 2 or 5 times a power of
// ten; `target` is how many of them are wanted, roughly.
AxisRange fit_axis(const std::vector<double>& values, bool log, int target = 5);

// A scale interpolates linearly or logarithmically from [range.low, range.high] to [from, to],
// clamped to it.
class Scale {
 public:
  Scale(const AxisRange& range, double from, double to);
  double operator()(double value) const;

 private:
  double map(double value) const;

  bool log_;
  double low_, high_, from_, to_;
};

}  // namespace tritgrad
