// The scatter chart. Most of it is finding a place for every label.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tools/svg.h"
#include "tools/svg_axis.h"
#include "tools/svg_canvas.h"

namespace tritgrad {
namespace {

using svg::Anchor;
using svg::Box;
using svg::Canvas;
using svg::Frame;

constexpr double kPlotHeight = 300;
constexpr double kMarkerRadius = 6;
constexpr double kHalfLine = 7;  // half the height of a label
constexpr int kRings = 24;       // 13 apart: as far as the plot is high

bool drawable(const ScatterPoint& point, const ScatterChart& chart) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!chart.x.log || point.x > 0) &&
         (!chart.y.log || point.y > 0);
}

struct Label {
  Box box;
  bool far = false;  // needs a line to its point
};

double overlap_area(const Box& a, const Box& b) {
  return std::max(0.0, std::min(a.right, b.right) - std::max(a.left, b.left)) *
         std::max(0.0, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
}

// Tries places around (x, y), nearest first: right, left, above, below, then the same on wider
// rings. Takes the first free one, or the one that covers least when the picture is full.
Label place_label(double x, double y, double width, const std::vector<Box>& taken,
                  const Box& bounds) {
  Label best;
  double least = std::numeric_limits<double>::infinity();
  for (int ring = 0; ring < kRings; ++ring) {
    const double away = kMarkerRadius + 3 + 13.0 * ring;
    const double side = away + width / 2;
    const double spots[][2] = {{side, 0},
                               {-side, 0},
                               {0, -away - 5},
                               {0, away + 5},
                               {side, -away},
                               {side, away},
                               {-side, -away},
                               {-side, away},
                               {width / 2, -away - 5},
                               {-width / 2, -away - 5},
                               {width / 2, away + 5},
                               {-width / 2, away + 5}};
    for (const auto& spot : spots) {
      const double cx = x + spot[0], cy = y + spot[1];
      const Box box{cx - width / 2, cy - kHalfLine, cx + width / 2, cy + kHalfLine};
      if (box.left < bounds.left || box.right > bounds.right || box.top < bounds.top ||
          box.bottom > bounds.bottom) {
        continue;
      }
      double covered = 0;
      for (const Box& other : taken) covered += overlap_area(box, other);
      if (covered < least) {
        least = covered;
        best = {box, ring > 0};
      }
      if (covered == 0) return best;
    }
  }
  if (least == std::numeric_limits<double>::infinity()) {  // wider than the plot
    best.box = {bounds.left, y - kHalfLine, bounds.left + width, y + kHalfLine};
  }
  return best;
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
  for (const ScatterPoint& point : points) {
    const double x = frame.x(point.x), y = frame.y(point.y);
    const Label label = place_label(x, y, svg::text_width(point.name), taken, bounds);
    const double cx = (label.box.left + label.box.right) / 2;
    const double cy = (label.box.top + label.box.bottom) / 2;
    if (label.far) {
      const double end_x = std::clamp(x, label.box.left, label.box.right);
      const double end_y = std::clamp(y, label.box.top, label.box.bottom);
      canvas.line(x, y, end_x, end_y, "leader");
    }
    canvas.text(cx, cy, point.name, Anchor::kMiddle, "halo");
    taken.push_back(label.box);
  }
}

}  // namespace

std::string render_svg(const ScatterChart& chart) {
  std::vector<ScatterPoint> points;
  std::copy_if(chart.points.begin(), chart.points.end(), std::back_inserter(points),
               [&](const ScatterPoint& point) { return drawable(point, chart); });
  Canvas canvas(chart.title);
  const Frame frame = draw_frame(canvas, chart.x, x_axis(points, chart.x.log), chart.y,
                                 y_axis(points, chart.y.log), kPlotHeight);
  std::vector<Box> taken;
  for (const ScatterPoint& point : points) {
    const double x = frame.x(point.x), y = frame.y(point.y);
    taken.push_back({x - kMarkerRadius, y - kMarkerRadius, x + kMarkerRadius, y + kMarkerRadius});
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
