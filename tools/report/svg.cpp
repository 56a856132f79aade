#include "tools/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "tools/report/numbers.h"
#include "tools/report/svg_axis.h"
#include "tools/report/svg_canvas.h"

namespace tritgrad {
namespace {

using svg::Anchor;
using svg::Canvas;
using svg::Frame;

constexpr double kLinesHeight = 220;

bool drawable(double x, double y, const LineChart& chart) {
  return std::isfinite(x) && std::isfinite(y) && (!chart.x.log || x > 0) && (!chart.y.log || y > 0);
}

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void draw_band(Canvas& canvas, const Frame& frame, const LineSeries& series) {
  if (series.lower.empty()) return;
  std::string path;
  const auto add = [&](std::size_t i, double y) {
    if (!std::isfinite(y)) return;
    path +=
        fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", frame.x(series.x[i]), frame.y(y));
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) add(i, series.upper[i]);
  for (std::size_t i = series.x.size(); i-- > 0;) add(i, series.lower[i]);
  if (path.empty()) return;
  canvas.raw(
      fmt::format(R"(<path class="band {}" d="{}Z"/>)", svg::style_class(series.style), path));
}

void draw_curve(Canvas& canvas, const Frame& frame, const LineChart& chart,
                const LineSeries& series) {
  std::string path;
  bool pen_down = false;
  double last_x = 0, last_y = 0;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.x[i], series.y[i], chart)) {
      pen_down = false;
      continue;
    }
    last_x = frame.x(series.x[i]);
    last_y = frame.y(series.y[i]);
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", last_x, last_y);
    pen_down = true;
  }
  if (path.empty()) return;
  canvas.raw(fmt::format(R"(<path class="curve {}"{} d="{}"/>)", svg::style_class(series.style),
                         svg::dash_attribute(series.style), path));
  if (series.mark && !drawable(series.x.back(), *series.mark, chart)) return;
  canvas.marker(last_x, series.mark ? frame.y(*series.mark) : last_y, series.style);
}

double sum(const std::vector<double>& parts) {
  double total = 0;
  for (const double part : parts) total += std::isfinite(part) ? part : 0.0;
  return total;
}

void check_series(const LineSeries& series) {
  check(series.x.size() == series.y.size(), "Series ", series.name, " has ", series.x.size(),
        " x and ", series.y.size(), " y values; give one y for each x");
  check(series.lower.size() == series.upper.size() &&
            (series.lower.empty() || series.lower.size() == series.x.size()),
        "Series ", series.name, " has a band of ", series.lower.size(), " and ",
        series.upper.size(), " values for ", series.x.size(), " points; give both bounds or none");
}

}  // namespace

std::string render_svg(const LineChart& chart) {
  std::vector<double> xs, ys;
  std::vector<std::string> names;
  std::vector<int> styles;
  for (const LineSeries& series : chart.series) {
    check_series(series);
    append(xs, series.x);
    append(ys, series.y);
    append(ys, series.lower);
    append(ys, series.upper);
    if (series.mark) ys.push_back(*series.mark);
    names.push_back(series.name);
    styles.push_back(series.style);
  }
  append(xs, chart.x.reach);
  append(ys, chart.y.reach);
  Canvas canvas(chart.title);
  const Frame frame = draw_frame(canvas, chart.x, fit_axis(xs, chart.x.log, Fit::kTight, 8),
                                 chart.y, fit_axis(ys, chart.y.log, Fit::kRound), kLinesHeight);
  for (const LineSeries& series : chart.series) draw_band(canvas, frame, series);
  // The first series is the baseline: it is drawn last, on top.
  for (auto series = chart.series.rbegin(); series != chart.series.rend(); ++series) {
    draw_curve(canvas, frame, chart, *series);
  }
  return canvas.finish(canvas.legend(frame_bottom(frame) + 4, names, styles, true) + svg::kMargin);
}

std::string render_svg(const StackedBars& chart) {
  constexpr double kBarHeight = 18, kPitch = 27;
  std::vector<double> totals = {0.0};
  double name_width = 0;
  for (const Bar& bar : chart.bars) {
    check(bar.parts.size() == chart.categories.size(), "Bar ", bar.name, " has ", bar.parts.size(),
          " parts for ", chart.categories.size(), " categories; give one part for each category");
    totals.push_back(sum(bar.parts));
    name_width = std::max(name_width, svg::text_width(bar.name));
  }
  name_width = std::min(name_width, svg::kWidth / 3);
  Canvas canvas(chart.title);
  const double top = canvas.category_legend(svg::kMargin, chart.categories) + 10;
  const double bottom = top + kPitch * static_cast<double>(chart.bars.size());
  const double left = svg::kMargin + name_width + 8, right = svg::kWidth - 48;
  const AxisRange range = fit_axis(totals, false, Fit::kRound, 6);
  const Scale scale(range, left, right);
  for (const Tick& tick : range.ticks) {
    canvas.line(scale(tick.value), top, scale(tick.value), bottom, "grid");
    canvas.text(scale(tick.value), bottom + 12, tick.text, Anchor::kMiddle, "soft");
  }
  canvas.text((left + right) / 2, bottom + 30, chart.unit, Anchor::kMiddle, "soft");
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const Bar& bar = chart.bars[i];
    const double middle = top + kPitch * (static_cast<double>(i) + 0.5);
    canvas.text(left - 8, middle, bar.name, Anchor::kEnd);
    double from = 0;
    for (std::size_t c = 0; c < bar.parts.size(); ++c) {
      if (!std::isfinite(bar.parts[c]) || bar.parts[c] <= 0) continue;
      const double x = scale(from), width = scale(from + bar.parts[c]) - x;
      // A hair of paper between neighbours, unless the part is itself that thin.
      canvas.raw(fmt::format(
          R"(<rect class="part tg-p{}" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}"/>)",
          c % svg::kCategories, x, middle - kBarHeight / 2, width > 2 ? width - 1 : width,
          kBarHeight));
      from += bar.parts[c];
    }
    canvas.text(scale(from) + 5, middle, fixed(from, 2), Anchor::kStart, "halo");
  }
  return canvas.finish(bottom + 40 + svg::kMargin);
}

}  // namespace tritgrad
