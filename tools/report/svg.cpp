#include "tools/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "engine/check.h"
#include "tools/report/number_text.h"
#include "tools/report/svg_axis.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

// Lengths are in units of the view box, in which text is kFontSize high.
constexpr double kWidth = 480;
constexpr double kFontSize = 12;
constexpr double kMargin = 8;
constexpr double kLineHeight = 17;
constexpr double kLinesHeight = 220;
constexpr double kScatterHeight = 320;
constexpr double kMarkerRadius = 6;
constexpr double kSample = 24;  // length of a line in the legend

// Series colours follow Okabe and Ito, darkened on white and lightened on black to a contrast of at
// least 3:1; parts of bars step in lightness as well, so that they survive a grey print. Plain CSS:
// programs that turn SVG into PDF or PNG know no custom properties.
constexpr std::string_view kStyleSheet = R"(<style>
.tg-chart{width:100%;height:auto;display:block;font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.tg-chart text{fill:#1b1f24}.tg-chart .soft{fill:#59636e}.tg-chart .halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.tg-chart .grid{stroke:#dfe3e8}.tg-chart .axis{stroke:#59636e}.tg-chart .curve{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}
.tg-chart .band{fill:currentColor;opacity:.13}.tg-chart .mark{fill:currentColor;stroke:#fff;stroke-width:1}.tg-chart .whisker{stroke:currentColor;stroke-width:1.5}.tg-chart .part{fill:currentColor}
.tg-chart .paper{fill:#fff}.tg-chart .front{fill:none;stroke:#59636e;stroke-width:1.25;stroke-dasharray:1 3;stroke-linecap:round}
.tg-s0{color:#1b1f24}.tg-s1{color:#0072b2}.tg-s2{color:#c44e00}.tg-s3{color:#00805e}.tg-s4{color:#a8407f}.tg-s5{color:#94710a}.tg-s6{color:#4a3fb0}.tg-s7{color:#2b8fc7}
.tg-p0{color:#0b3c5d}.tg-p1{color:#e0a100}.tg-p2{color:#c44e00}.tg-p3{color:#4f9fd1}.tg-p4{color:#c3ccd6}.tg-p5{color:#a8407f}
@media screen and (prefers-color-scheme:dark){.tg-chart text{fill:#e6edf3}.tg-chart .soft{fill:#9aa5b1}.tg-chart .halo,.tg-chart .mark{stroke:#0f1419}.tg-chart .grid{stroke:#30363d}.tg-chart .axis,.tg-chart .front{stroke:#9aa5b1}.tg-chart .paper{fill:#0f1419}
.tg-s0{color:#e6edf3}.tg-s1{color:#4fa8e0}.tg-s2{color:#f58a4b}.tg-s3{color:#2fc39a}.tg-s4{color:#e08bbd}.tg-s5{color:#e3b341}.tg-s6{color:#a59bf5}.tg-s7{color:#7fd0f7}
.tg-p0{color:#9ecbf0}.tg-p1{color:#f0c24b}.tg-p2{color:#e2733a}.tg-p3{color:#3578ad}.tg-p4{color:#56616d}.tg-p5{color:#e08bbd}}
</style>)";
constexpr std::size_t kSeriesColours = 8;
constexpr std::size_t kPartColours = 6;

// Five dashes and seven colours share no factor: 35 series differ in the pair.
constexpr std::array<std::string_view, 5> kDashes = {"", "7 3", "2 3", "9 3 2 3", "4 2"};
// Outlines of markers around the origin, in order of the series.
constexpr std::array<const char*, 8> kMarkers = {
    "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z",
    "M-3.8 -3.8H3.8V3.8H-3.8Z",
    "M0 -5L4.8 3.6H-4.8Z",
    "M0 -5.2L4.4 0L0 5.2L-4.4 0Z",
    "M0 5L4.8 -3.6H-4.8Z",
    "M-1.6 -4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z",
    "M0 -5L4.8 -1.5L3 4.2H-3L-4.8 -1.5Z",
    "M-5 -2.8L-2.8 -5L0 -2.2L2.8 -5L5 -2.8L2.2 0L5 2.8L2.8 5L0 2.2L-2.8 5L-5 2.8L-2.2 0Z"};

// Returns the class of a series' colour; no later series gets that of the baseline.
std::string series_class(int style) {
  const auto later = static_cast<std::size_t>(std::max(style - 1, 0));
  return fmt::format("tg-s{}", style == 0 ? 0 : 1 + later % (kSeriesColours - 1));
}

std::string dash_attribute(int style) {
  const std::string_view dash = kDashes[static_cast<std::size_t>(style) % kDashes.size()];
  return dash.empty() ? std::string() : fmt::format(R"( stroke-dasharray="{}")", dash);
}

// Returns an upper estimate: there are no font metrics at hand, and a label that is thought too
// wide only costs space.
double text_width(std::string_view utf8) {
  return 0.58 * kFontSize * static_cast<double>(display_width(utf8));
}

struct Rectangle {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// The markup of a picture while it is drawn; what comes later lies on top.
class Canvas {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
  }

  // `anchor` is start, middle or end, and `y` the middle of the line of text.
  void text(double x, double y, std::string_view content, std::string_view anchor = "start",
            std::string_view classes = "") {
    constexpr double kBaseline = 0.35 * kFontSize;
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y + kBaseline,
        anchor, classes, escape_markup(content));
  }

  void line(double x1, double y1, double x2, double y2, std::string_view classes) {
    add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1, y1, x2, y2,
        classes);
  }

  // `title` is shown where the mouse rests on the marker.
  void marker(double x, double y, int style, std::string_view title) {
    add(R"-(<path class="mark {}" transform="translate({:.1f} {:.1f})" d="{}">)-"
        "<title>{}</title></path>",
        series_class(style), x, y, kMarkers[static_cast<std::size_t>(style) % kMarkers.size()],
        escape_markup(title));
  }

  // Writes names in as many rows as needed, each behind its sample, which draw_sample(i, x, y)
  // draws from x on around y. Returns the new bottom.
  template <typename DrawSample>
  double legend(double top, const std::vector<std::string>& names, double sample_width,
                const DrawSample& draw_sample) {
    double x = kMargin, y = top + kLineHeight / 2;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double width = sample_width + 6 + text_width(names[i]);
      if (x > kMargin && x + width > kWidth - kMargin) {
        x = kMargin;
        y += kLineHeight;
      }
      draw_sample(i, x, y);
      text(x + sample_width + 6, y, names[i]);
      x += width + 14;
    }
    return y + kLineHeight / 2;
  }

  std::string finish(const std::string& title, double height) const {
    const std::string escaped = escape_markup(title);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tg-chart\" viewBox=\"0 0 {:.0f} "
        "{:.0f}\" role=\"img\" aria-label=\"{}\"><title>{}</title>{}<rect class=\"paper\" "
        "width=\"100%\" height=\"100%\"/>{}</svg>\n",
        kWidth, height, escaped, escaped, kStyleSheet, body_);
  }

 private:
  std::string body_;
};

// Data are drawn in the box; the scales map values to positions in it.
struct PlotArea {
  Rectangle box;
  Scale x, y;

  double with_axis() const { return box.bottom + 13 + 1.5 * kLineHeight; }  // bottom of the labels
};

// Draws the grid, the ticks and the labels around an area of that height; the label of the y axis
// stands above it and reads horizontally.
PlotArea draw_axes(Canvas& canvas, const Axis& x, const AxisRange& x_range, const Axis& y,
                   const AxisRange& y_range, double height) {
  double tick_width = 0;
  for (const Tick& tick : y_range.ticks) tick_width = std::max(tick_width, text_width(tick.text));
  const double top = kMargin + kLineHeight + 6;
  const Rectangle box{kMargin + tick_width + 6, top, kWidth - 2 * kMargin, top + height};
  PlotArea area{box, Scale(x_range, box.left, box.right), Scale(y_range, box.bottom, box.top)};

  canvas.text(kMargin, kMargin + kLineHeight / 2, y.label, "start", "soft");
  for (const Tick& tick : y_range.ticks) {
    const double at = area.y(tick.value);
    canvas.line(box.left, at, box.right, at, "grid");
    canvas.text(box.left - 6, at, tick.text, "end", "soft");
  }
  double free_from = 0;  // labels that would touch their neighbour are left out
  for (const Tick& tick : x_range.ticks) {
    const double at = area.x(tick.value), half = text_width(tick.text) / 2;
    canvas.line(at, box.bottom, at, box.bottom + 4, "axis");
    if (at - half < free_from) continue;
    canvas.text(at, box.bottom + 13, tick.text, "middle", "soft");
    free_from = at + half + 4;
  }
  canvas.line(box.left, box.bottom, box.right, box.bottom, "axis");
  canvas.text((box.left + box.right) / 2, box.bottom + 13 + kLineHeight, x.label, "middle", "soft");
  return area;
}

bool drawable(double x, double y, const Axis& x_axis, const Axis& y_axis) {
  return std::isfinite(x) && std::isfinite(y) && (!x_axis.log || x > 0) && (!y_axis.log || y > 0);
}

// ---- line charts -------------------------------------------------------------------------------

void check_series(const LineSeries& series) {
  check(series.x.size() == series.y.size(), "Series ", series.name, " has ", series.x.size(),
        " x and ", series.y.size(), " y values; give one y for each x");
  check(series.lower.size() == series.upper.size() &&
            (series.lower.empty() || series.lower.size() == series.x.size()),
        "Series ", series.name, " has a band of ", series.lower.size(), " and ",
        series.upper.size(), " values for ", series.x.size(), " points; give both bounds or none");
}

void draw_band(Canvas& canvas, const PlotArea& area, const LineSeries& series) {
  if (series.lower.empty()) return;
  std::string path;
  const auto add = [&](std::size_t i, double y) {
    if (!std::isfinite(y)) return;
    path +=
        fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", area.x(series.x[i]), area.y(y));
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) add(i, series.upper[i]);
  for (std::size_t i = series.x.size(); i-- > 0;) add(i, series.lower[i]);
  if (path.empty()) return;
  canvas.add(R"(<path class="band {}" d="{}Z"/>)", series_class(series.style), path);
}

void draw_curve(Canvas& canvas, const PlotArea& area, const LineChart& chart,
                const LineSeries& series) {
  std::string path;
  bool pen_down = false;
  std::size_t last = 0;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!drawable(series.x[i], series.y[i], chart.x, chart.y)) {
      pen_down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", area.x(series.x[i]),
                        area.y(series.y[i]));
    pen_down = true;
    last = i;
  }
  if (path.empty()) return;
  canvas.add(R"(<path class="curve {}"{} d="{}"><title>{}</title></path>)",
             series_class(series.style), dash_attribute(series.style), path,
             escape_markup(series.name));
  const double y = series.mark.value_or(series.y[last]);
  if (!drawable(series.x.back(), y, chart.x, chart.y) && series.mark) return;
  canvas.marker(area.x(series.x[last]), area.y(y), series.style,
                fmt::format("{}: {}", series.name, significant(y, 4)));
}

// ---- scatter charts ----------------------------------------------------------------------------

bool has_spread(const ScatterPoint& point) {
  return point.y_spread && std::isfinite(*point.y_spread) && *point.y_spread > 0;
}

void draw_whisker(Canvas& canvas, const PlotArea& area, const ScatterPoint& point) {
  if (!has_spread(point)) return;
  const double x = area.x(point.x);
  const double top = area.y(point.y + *point.y_spread), bottom = area.y(point.y - *point.y_spread);
  const std::string classes = "whisker " + series_class(point.style);
  canvas.line(x, top, x, bottom, classes);
  canvas.line(x - 4, top, x + 4, top, classes);
  canvas.line(x - 4, bottom, x + 4, bottom, classes);
}

// Draws stairs: each point's height is what is reached for less than the next point's x, and the
// last one's goes on to the edge.
void draw_front(Canvas& canvas, const PlotArea& area, const ScatterChart& chart) {
  std::string path;
  for (const auto& [x, y] : chart.front) {
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", area.x(x), area.y(y))
                         : fmt::format("H{:.1f}V{:.1f}", area.x(x), area.y(y));
  }
  if (path.empty()) return;
  canvas.add(R"(<path class="front" d="{}H{:.1f}"/>)", path, area.box.right);
}

// ---- stacked bars ------------------------------------------------------------------------------

double sum_of_finite(const std::vector<double>& parts) {
  double total = 0;
  for (const double part : parts) total += std::isfinite(part) ? part : 0.0;
  return total;
}

void draw_bar(Canvas& canvas, const Scale& scale, double middle, const Bar& bar,
              const std::vector<std::string>& categories) {
  constexpr double kBarHeight = 18;
  double from = 0;
  for (std::size_t c = 0; c < bar.parts.size(); ++c) {
    if (!std::isfinite(bar.parts[c]) || bar.parts[c] <= 0) continue;
    const double x = scale(from), width = scale(from + bar.parts[c]) - x;
    // A hair of paper between neighbours, unless the part is itself that thin.
    canvas.add(R"(<rect class="part tg-p{}" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}">)"
               "<title>{}</title></rect>",
               c % kPartColours, x, middle - kBarHeight / 2, width > 2 ? width - 1 : width,
               kBarHeight,
               escape_markup(fmt::format("{}, {}: {}", bar.name, categories[c],
                                         significant(bar.parts[c], 3))));
    from += bar.parts[c];
  }
  canvas.text(scale(from) + 5, middle, fixed(from, 2), "start", "halo");
}

}  // namespace

std::string render_svg(const LineChart& chart) {
  std::vector<double> xs = chart.x.reach, ys = chart.y.reach;
  std::vector<std::string> names;
  for (const LineSeries& series : chart.series) {
    check_series(series);
    xs.insert(xs.end(), series.x.begin(), series.x.end());
    for (const std::vector<double>* values : {&series.y, &series.lower, &series.upper}) {
      ys.insert(ys.end(), values->begin(), values->end());
    }
    if (series.mark) ys.push_back(*series.mark);
    names.push_back(series.name);
  }
  Canvas canvas;
  const PlotArea area = draw_axes(canvas, chart.x, fit_axis(xs, chart.x.log, 8), chart.y,
                                  fit_axis(ys, chart.y.log), kLinesHeight);
  for (const LineSeries& series : chart.series) draw_band(canvas, area, series);
  // The first series is the baseline: it is drawn last, on top.
  for (auto series = chart.series.rbegin(); series != chart.series.rend(); ++series) {
    draw_curve(canvas, area, chart, *series);
  }
  const double bottom =
      canvas.legend(area.with_axis() + 4, names, kSample, [&](std::size_t i, double x, double y) {
        const int style = chart.series[i].style;
        canvas.add(R"(<path class="curve {}"{} d="M{:.1f} {:.1f}h{}"/>)", series_class(style),
                   dash_attribute(style), x, y, kSample);
        canvas.marker(x + kSample / 2, y, style, names[i]);
      });
  return canvas.finish(chart.title, bottom + kMargin);
}

std::string render_svg(const ScatterChart& chart) {
  std::vector<ScatterPoint> points;
  std::vector<double> xs, ys;
  for (const ScatterPoint& point : chart.points) {
    if (!drawable(point.x, point.y, chart.x, chart.y)) continue;
    points.push_back(point);
    const double spread = has_spread(point) ? *point.y_spread : 0.0;
    xs.push_back(point.x);
    ys.insert(ys.end(), {point.y - spread, point.y + spread});
  }
  Canvas canvas;
  const PlotArea area = draw_axes(canvas, chart.x, fit_axis(xs, chart.x.log), chart.y,
                                  fit_axis(ys, chart.y.log), kScatterHeight);
  draw_front(canvas, area, chart);
  for (const ScatterPoint& point : points) draw_whisker(canvas, area, point);
  std::vector<std::string> names;
  for (const ScatterPoint& point : points) {
    names.push_back(point.name);
    canvas.marker(
        area.x(point.x), area.y(point.y), point.style,
        fmt::format("{}: {} at {}", point.name, significant(point.y, 4), significant(point.x, 3)));
  }
  double bottom = area.with_axis();
  if (!names.empty()) {
    bottom =
        canvas.legend(bottom + 4, names, 2 * kMarkerRadius, [&](std::size_t i, double x, double y) {
          canvas.marker(x + kMarkerRadius, y, points[i].style, names[i]);
        });
  }
  return canvas.finish(chart.title, bottom + kMargin);
}

std::string render_svg(const StackedBars& chart) {
  constexpr double kPitch = 27, kBox = 12;
  std::vector<double> totals = {0.0};
  double name_width = 0;
  for (const Bar& bar : chart.bars) {
    check(bar.parts.size() == chart.categories.size(), "Bar ", bar.name, " has ", bar.parts.size(),
          " parts for ", chart.categories.size(), " categories; give one part for each category");
    totals.push_back(sum_of_finite(bar.parts));
    name_width = std::max(name_width, text_width(bar.name));
  }
  name_width = std::min(name_width, kWidth / 3);
  Canvas canvas;
  const double top =
      10 + canvas.legend(kMargin, chart.categories, kBox, [&](std::size_t i, double x, double y) {
        canvas.add(R"(<rect class="part tg-p{}" x="{:.1f}" y="{:.1f}" width="{}" height="{}"/>)",
                   i % kPartColours, x, y - kBox / 2, kBox, kBox);
      });
  const double bottom = top + kPitch * static_cast<double>(chart.bars.size());
  const double left = kMargin + name_width + 8, right = kWidth - 48;
  const AxisRange range = fit_axis(totals, false, 6);
  const Scale scale(range, left, right);
  for (const Tick& tick : range.ticks) {
    canvas.line(scale(tick.value), top, scale(tick.value), bottom, "grid");
    canvas.text(scale(tick.value), bottom + 12, tick.text, "middle", "soft");
  }
  canvas.text((left + right) / 2, bottom + 30, chart.unit, "middle", "soft");
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const double middle = top + kPitch * (static_cast<double>(i) + 0.5);
    canvas.text(left - 8, middle, chart.bars[i].name, "end");
    draw_bar(canvas, scale, middle, chart.bars[i], chart.categories);
  }
  return canvas.finish(chart.title, bottom + 40 + kMargin);
}

std::string escape_markup(std::string_view text) {
  static const std::map<char, const char*> kEntities = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool control = (code < 0x20 && c != '\t' && c != '\n' && c != '\r') || code == 0x7f;
    if (const auto entity = kEntities.find(c); entity != kEntities.end()) {
      out += entity->second;
    } else {
      control ? out += "\uFFFD" : out += c;
    }
  }
  return out;
}

}  // namespace tritgrad
