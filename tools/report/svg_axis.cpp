#include "tools/report/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

// Larger magnitudes are cut off: differences and steps then stay finite.
constexpr double kLargest = 1e100;
// Ticks may miss the ends of the data by this part of a step, the rounding error of their division.
constexpr double kSlack = 1e-9;

double round_step(double span, int target) {
  const double raw = span / std::max(target, 1);
  const double unit = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= raw * (1.0 - kSlack)) return factor * unit;
  }
  return 10.0 * unit;
}

std::string linear_text(double value, double step) {
  if (std::max(std::abs(value), step) >= 1e6 || step < 1e-6) return fmt::format("{:.3g}", value);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + kSlack)));
  return fixed(value, decimals);
}

std::string log_text(double value) {
  return value >= 1e-4 && value < 1e6 ? fmt::format("{:g}", value) : fmt::format("{:.0e}", value);
}

void fit_linear(AxisRange& range, int target) {
  if (range.high - range.low <= 1e-12 * std::max(std::abs(range.low), std::abs(range.high))) {
    const double margin = range.low == 0.0 ? 1.0 : 0.01 * std::abs(range.low);
    range.low -= margin;
    range.high += margin;
  }
  const double step = round_step(range.high - range.low, target);
  const double first = std::floor(range.low / step + kSlack);
  const double last = std::ceil(range.high / step - kSlack);
  for (double i = first; i <= last; ++i) {
    range.ticks.push_back({step * i, linear_text(step * i, step)});
  }
}

std::vector<double> log_factors(double decades) {
  if (decades > 3.0) return {1.0};
  if (decades > 1.5) return {1.0, 3.0};
  return {1.0, 2.0, 5.0};
}

void fit_log(AxisRange& range, int target) {
  const double decades = std::log10(range.high / range.low);
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / (2.0 * target))));
  const int bottom = static_cast<int>(std::floor(std::log10(range.low))) - stride;
  const int top = static_cast<int>(std::ceil(std::log10(range.high))) + stride;
  std::vector<double> marks;
  for (int power = bottom; power <= top; ++power) {
    if (power % stride != 0) continue;
    for (const double factor : log_factors(decades)) {
      marks.push_back(factor * std::pow(10.0, power));
    }
  }
  const auto first = std::upper_bound(marks.begin(), marks.end(), range.low * (1 + kSlack)) - 1;
  auto last = std::lower_bound(marks.begin(), marks.end(), range.high * (1 - kSlack));
  if (first == last) ++last;
  for (auto mark = first; mark <= last; ++mark) range.ticks.push_back({*mark, log_text(*mark)});
}

}  // namespace

AxisRange fit_axis(const std::vector<double>& values, bool log, int target) {
  AxisRange range;
  range.log = log;
  bool any = false;
  for (double value : values) {
    if (!std::isfinite(value) || (log && value <= 0.0)) continue;
    value = std::clamp(value, log ? 1.0 / kLargest : -kLargest, kLargest);
    range.low = any ? std::min(range.low, value) : value;
    range.high = any ? std::max(range.high, value) : value;
    any = true;
  }
  if (!any) {
    range.low = log ? 0.1 : 0.0;
    range.high = 1.0;
  }
  log ? fit_log(range, target) : fit_linear(range, target);
  range.low = range.ticks.front().value;
  range.high = range.ticks.back().value;
  return range;
}

Scale::Scale(const AxisRange& range, double from, double to)
    : log_(range.log), low_(0), high_(1), from_(from), to_(to) {
  low_ = map(range.low);
  high_ = map(range.high);
}

double Scale::map(double value) const { return log_ ? std::log10(std::max(value, 1e-300)) : value; }

double Scale::operator()(double value) const {
  const double share = std::clamp((map(value) - low_) / (high_ - low_), 0.0, 1.0);
  return from_ + share * (to_ - from_);
}

}  // namespace tritgrad
