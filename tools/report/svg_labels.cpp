#include "tools/report/svg_labels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tritgrad::svg {
namespace {

constexpr double kHalfLine = 7;  // half the height of a label
constexpr double kGap = 3;       // between labels, and to their points
constexpr int kRings = 24;       // 13 apart: as far as a plot is high
constexpr double kRingStep = 13;
// What a place costs, in units of distance to the point: area that it covers, lines that it
// crosses.
constexpr double kAreaCost = 20;
constexpr double kCrossingCost = 80;

double overlap_area(const Box& a, const Box& b) {
  return std::max(0.0, std::min(a.right, b.right) - std::max(a.left, b.left)) *
         std::max(0.0, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
}

bool inside(const Box& box, const Box& bounds) {
  return box.left >= bounds.left && box.right <= bounds.right && box.top >= bounds.top &&
         box.bottom <= bounds.bottom;
}

// Whether the line of a label meets a box (Liang and Barsky's clipping).
bool crosses(const PlacedLabel& line, const Box& box) {
  const double dx = line.to_x - line.from_x, dy = line.to_y - line.from_y;
  double enter = 0.0, leave = 1.0;
  for (const auto& [step, room] : {std::pair{-dx, line.from_x - box.left},
                                   {dx, box.right - line.from_x},
                                   {-dy, line.from_y - box.top},
                                   {dy, box.bottom - line.from_y}}) {
    if (step == 0.0) {
      if (room < 0.0) return false;
    } else if (step < 0.0) {
      enter = std::max(enter, room / step);
    } else {
      leave = std::min(leave, room / step);
    }
  }
  return enter < leave;
}

bool crosses(const PlacedLabel& a, const PlacedLabel& b) {
  const auto side = [](const PlacedLabel& line, double x, double y) {
    return (line.to_x - line.from_x) * (y - line.from_y) -
           (line.to_y - line.from_y) * (x - line.from_x);
  };
  return side(a, b.from_x, b.from_y) * side(a, b.to_x, b.to_y) < 0.0 &&
         side(b, a.from_x, a.from_y) * side(b, a.to_x, a.to_y) < 0.0;
}

// The places on one ring around a point: right, left, above, below, then the corners.
std::vector<PlacedLabel> ring_of(const LabelledPoint& point, double marker_radius, int ring) {
  const double half = text_width(point.name) / 2;
  const double away = marker_radius + kGap + kRingStep * ring;
  const double side = away + half;
  std::vector<PlacedLabel> places;
  for (const auto& [dx, dy] : {std::pair{side, 0.0},
                               {-side, 0.0},
                               {0.0, -away - 5},
                               {0.0, away + 5},
                               {side, -away},
                               {side, away},
                               {-side, -away},
                               {-side, away},
                               {half, -away - 5},
                               {-half, -away - 5},
                               {half, away + 5},
                               {-half, away + 5}}) {
    const double x = point.x + dx, y = point.y + dy;
    PlacedLabel label{
        {x - half, y - kHalfLine, x + half, y + kHalfLine}, ring > 0, point.x, point.y, 0, 0};
    label.to_x = std::clamp(point.x, label.box.left, label.box.right);
    label.to_y = std::clamp(point.y, label.box.top, label.box.bottom);
    places.push_back(label);
  }
  return places;
}

class Labels {
 public:
  Labels(double marker_radius, std::vector<Box> taken, const Box& bounds)
      : marker_radius_(marker_radius), taken_(std::move(taken)), bounds_(bounds) {}

  void place(const LabelledPoint& point) {
    PlacedLabel best;
    double least = std::numeric_limits<double>::infinity();
    for (int ring = 0; ring < kRings; ++ring) {
      if (kRingStep * ring >= least) break;  // no place out there can be better
      for (const PlacedLabel& label : ring_of(point, marker_radius_, ring)) {
        if (!inside(label.box, bounds_)) continue;
        const double cost = kRingStep * ring + crowding(label);
        if (cost < least) {
          least = cost;
          best = label;
        }
      }
    }
    if (least == std::numeric_limits<double>::infinity()) {  // wider than the picture
      best.box = {bounds_.left, point.y - kHalfLine, bounds_.left + text_width(point.name),
                  point.y + kHalfLine};
    }
    placed_.push_back(best);
  }

  std::vector<PlacedLabel> take() { return std::move(placed_); }

 private:
  double crowding(const PlacedLabel& label) const {
    const Box wide{label.box.left - kGap, label.box.top, label.box.right + kGap, label.box.bottom};
    double cost = 0.0;
    for (const Box& box : taken_) {
      cost += kAreaCost * overlap_area(label.box, box);
      const bool own = label.from_x > box.left && label.from_x < box.right &&
                       label.from_y > box.top && label.from_y < box.bottom;
      if (label.far && !own && crosses(label, box)) cost += kCrossingCost;
    }
    for (const PlacedLabel& other : placed_) {
      cost += kAreaCost * overlap_area(wide, other.box);
      if (other.far && crosses(other, label.box)) cost += kCrossingCost;
      if (label.far && crosses(label, other.box)) cost += kCrossingCost;
      if (label.far && other.far && crosses(label, other)) cost += kCrossingCost;
    }
    return cost;
  }

  double marker_radius_;
  std::vector<Box> taken_;
  Box bounds_;
  std::vector<PlacedLabel> placed_;
};

}  // namespace

std::vector<PlacedLabel> place_labels(const std::vector<LabelledPoint>& points,
                                      double marker_radius, std::vector<Box> taken,
                                      const Box& bounds) {
  for (const LabelledPoint& point : points) {
    taken.push_back({point.x - marker_radius, point.y - marker_radius, point.x + marker_radius,
                     point.y + marker_radius});
  }
  Labels labels(marker_radius, std::move(taken), bounds);
  for (const LabelledPoint& point : points) labels.place(point);
  return labels.take();
}

}  // namespace tritgrad::svg
