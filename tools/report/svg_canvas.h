// Drawing shared by the charts: the frame with its axes, text, markers, legend and style sheet.
// Units are those of the view box, in which text is kFontSize high.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/report/svg.h"
#include "tools/report/svg_axis.h"

namespace tritgrad::svg {

inline constexpr double kWidth = 480;
inline constexpr double kFontSize = 12;
inline constexpr double kMargin = 8;
inline constexpr int kStyles = 8;      // colours of series
inline constexpr int kCategories = 6;  // colours of stacked parts

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

enum class Anchor { kStart, kMiddle, kEnd };

// An upper estimate: there are no font metrics at hand, and a label too wide only costs space.
double text_width(std::string_view utf8);

class Canvas {
 public:
  explicit Canvas(std::string title) : title_(std::move(title)) {}

  void raw(std::string_view markup) { body_ += markup; }
  // `y` is the middle of the line of text. `style` are extra class names.
  void text(double x, double y, std::string_view content, Anchor anchor = Anchor::kStart,
            std::string_view classes = "");
  void line(double x1, double y1, double x2, double y2, std::string_view classes);
  void marker(double x, double y, int style);
  // A line sample and a name for each series, in as many rows as needed; returns the new bottom.
  double legend(double top, const std::vector<std::string>& names, const std::vector<int>& styles,
                bool with_line);
  // The legend of stacked categories.
  double category_legend(double top, const std::vector<std::string>& names);

  std::string finish(double height) const;

 private:
  std::string title_;
  std::string body_;
};

struct Frame {
  Box plot;
  Scale x, y;
};
// Grid, ticks and labels for a plot whose area is `plot_height` high; leaves room on top for the
// label of the y axis, which reads horizontally.
Frame draw_frame(Canvas& canvas, const Axis& x, const AxisRange& x_range, const Axis& y,
                 const AxisRange& y_range, double plot_height);
// Bottom of everything draw_frame() drew.
double frame_bottom(const Frame& frame);

std::string style_class(int style);     // colour of a series
std::string dash_attribute(int style);  // ` stroke-dasharray="..."` or nothing

}  // namespace tritgrad::svg
