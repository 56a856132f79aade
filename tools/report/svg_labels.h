// Places for the names of points in a crowded picture.
#pragma once

#include <string>
#include <vector>

#include "tools/report/svg_canvas.h"

namespace tritgrad::svg {

struct LabelledPoint {
  double x = 0, y = 0;
  std::string name;
};

struct PlacedLabel {
  Box box;           // of the text, centred in it
  bool far = false;  // so far from its point that a line must lead there
  double from_x = 0, from_y = 0, to_x = 0, to_y = 0;  // that line, from the point to the box
};

// One label for each point, in their order, within `bounds`. No label lies on another one, on a
// marker or on what is `taken`, and no line crosses them, as long as there is room: each takes the
// best place that those before it have left, near ones first.
std::vector<PlacedLabel> place_labels(const std::vector<LabelledPoint>& points,
                                      double marker_radius, std::vector<Box> taken,
                                      const Box& bounds);

}  // namespace tritgrad::svg
