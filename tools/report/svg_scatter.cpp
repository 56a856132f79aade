// The scatter chart.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tools/report/svg.h"
#include "tools/report/svg_axis.h"
#include "tools/report/svg_canvas.h"
#include "tools/report/svg_labels.h"

namespace tritgrad {
namespace {

using svg::Anchor;
using svg::Box;
using svg::Canvas;
using svg::Frame;

constexpr double kScatterHeight = 320;
constexpr double kMarkerRadius = 6;

bool drawable(const ScatterPoint& point, const ScatterChart& chart) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!chart.x.log || point.x > 0) &&
         (!chart.y.log || point.y > 0);
}

void draw_whisker(Canvas& canvas, const Frame& frame, const ScatterPoint& point) {
  const double x = frame.x(point.x), top = frame.y(point.y + *point.y_spread),
               bottom = frame.y(point.y - *point.y_spread);
  const std::string classes = "whisker " + svg::style_class(point.style);
  canvas.line(x, top, x, bottom, classes);
  canvas.line(x - 4, top, x + 4, top, classes);
  canvas.line(x - 4, bottom, x + 4, bottom, classes);
}

bool has_spread(const ScatterPoint& point) {
  return point.y_spread && std::isfinite(*point.y_spread) && *point.y_spread > 0;
}

// Stairs from each point of the front at the height that is reached for fewer than the next's x;
// from the last one to the edge.
void draw_front(Canvas& canvas, const Frame& frame, const ScatterChart& chart) {
  std::string path;
  for (const auto& [x, y] : chart.front) {
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", frame.x(x), frame.y(y))
                         : fmt::format("H{:.1f}V{:.1f}", frame.x(x), frame.y(y));
  }
  if (path.empty()) return;
  canvas.raw(fmt::format(R"(<path class="front" d="{}H{:.1f}"/>)", path, frame.plot.right));
}

AxisRange x_axis(const std::vector<ScatterPoint>& points, bool log) {
  std::vector<double> xs;
  for (const ScatterPoint& point : points) xs.push_back(point.x);
  return fit_axis(xs, log, Fit::kRound);
}

AxisRange y_axis(const std::vector<ScatterPoint>& points, bool log) {
  std::vector<double> ys;
  for (const ScatterPoint& point : points) {
    const double spread = has_spread(point) ? *point.y_spread : 0.0;
    ys.insert(ys.end(), {point.y - spread, point.y + spread});
  }
  return fit_axis(ys, log, Fit::kRound);
}

void draw_labels(Canvas& canvas, const Frame& frame, const std::vector<ScatterPoint>& points,
                 std::vector<Box> taken) {
  const Box bounds{frame.plot.left + 2, frame.plot.top - 6, svg::kWidth - 2, frame.plot.bottom - 2};
  std::vector<svg::LabelledPoint> names;
  for (const ScatterPoint& point : points) {
    names.push_back({frame.x(point.x), frame.y(point.y), point.name});
  }
  const auto labels = svg::place_labels(names, kMarkerRadius, std::move(taken), bounds);
  for (const svg::PlacedLabel& label : labels) {
    if (label.far) canvas.line(label.from_x, label.from_y, label.to_x, label.to_y, "leader");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Box& box = labels[i].box;
    canvas.text((box.left + box.right) / 2, (box.top + box.bottom) / 2, names[i].name,
                Anchor::kMiddle, "halo");
  }
}

}  // namespace

std::string render_svg(const ScatterChart& chart) {
  std::vector<ScatterPoint> points;
  std::copy_if(chart.points.begin(), chart.points.end(), std::back_inserter(points),
               [&](const ScatterPoint& point) { return drawable(point, chart); });
  Canvas canvas(chart.title);
  const Frame frame = draw_frame(canvas, chart.x, x_axis(points, chart.x.log), chart.y,
                                 y_axis(points, chart.y.log), kScatterHeight);
  draw_front(canvas, frame, chart);
  std::vector<Box> taken;
  for (const ScatterPoint& point : points) {
    const double x = frame.x(point.x);
    if (!has_spread(point)) continue;
    taken.push_back(
        {x - 4, frame.y(point.y + *point.y_spread), x + 4, frame.y(point.y - *point.y_spread)});
    draw_whisker(canvas, frame, point);
  }
  draw_labels(canvas, frame, points, taken);
  for (const ScatterPoint& point : points) {
    canvas.marker(frame.x(point.x), frame.y(point.y), point.style);
  }
  return canvas.finish(frame_bottom(frame) + svg::kMargin);
}

}  // namespace tritgrad
