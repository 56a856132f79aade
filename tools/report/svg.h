// Small charts as inline SVG: no scripts, no network, light and dark, readable without colour.
//
// Each picture carries its own style sheet, so that it survives being cut out of its page. A series
// has an index into a palette of colour-blind safe colours, dashes and markers; index 0 is drawn in
// the colour of the text and meant for the baseline. A legend below the picture names every mark;
// names and values also appear where the mouse rests on one. Text is escaped here. Equal charts
// give equal bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

struct Axis {
  std::string label;
  bool log = false;
  // Line charts keep these values within the axis even if no series comes that far.
  std::vector<double> reach = {};
};

struct LineSeries {
  std::string name;
  int style = 0;
  std::vector<double> x, y;          // same length; a non-finite y interrupts the line
  std::vector<double> lower, upper;  // band around y; both empty: none
  std::optional<double> mark = {};   // y of the marker, by default that of the last point
};

struct LineChart {
  std::string title;
  Axis x, y;
  std::vector<LineSeries> series;
};

struct ScatterPoint {
  std::string name;
  int style = 0;
  double x = 0, y = 0;
  std::optional<double> y_spread;  // drawn as y +- spread
};

struct ScatterChart {
  std::string title;
  Axis x, y;
  std::vector<ScatterPoint> points;
  std::vector<std::array<double, 2>> front = {};  // x and y, rising in both: drawn as stairs
};

struct Bar {
  std::string name;
  std::vector<double> parts;  // one for each category, none negative
};

struct StackedBars {
  std::string title;
  std::string unit;  // under the axis
  std::vector<std::string> categories;
  std::vector<Bar> bars;
};

std::string render_svg(const LineChart& chart);
std::string render_svg(const ScatterChart& chart);
std::string render_svg(const StackedBars& chart);

// Returns text that is safe as the content of an element and as a quoted attribute value. Control
// characters, which neither HTML nor XML may contain, become U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace tritgrad
