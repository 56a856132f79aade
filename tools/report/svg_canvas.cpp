#include "tools/report/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/report/markup.h"
#include "tools/report/table.h"

namespace tritgrad::svg {
namespace {

constexpr double kLineHeight = 17;
constexpr double kSample = 24;  // length of a line sample in the legend

// Series colours follow Okabe and Ito, darkened on white and lightened on black to a contrast of at
// least 3:1; parts of bars step in lightness as well, so that they survive a grey print. Plain CSS:
// programs that turn SVG into PDF or PNG know no custom properties.
constexpr std::string_view kStyleSheet = R"(<style>
.tg-chart{width:100%;height:auto;display:block;font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.tg-chart text{fill:#1b1f24;dominant-baseline:central}.tg-chart .soft{fill:#59636e}.tg-chart .halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.tg-chart .grid{stroke:#dfe3e8}.tg-chart .axis,.tg-chart .leader{stroke:#59636e}.tg-chart .leader{stroke-width:.75}.tg-chart .curve{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}
.tg-chart .band{fill:currentColor;opacity:.13}.tg-chart .mark{fill:currentColor;stroke:#fff;stroke-width:1}.tg-chart .whisker{stroke:currentColor;stroke-width:1.5}.tg-chart .part{fill:currentColor}
.tg-chart .paper{fill:#fff}.tg-chart .front{fill:none;stroke:#59636e;stroke-width:1.25;stroke-dasharray:1 3;stroke-linecap:round}
.tg-s0{color:#1b1f24}.tg-s1{color:#0072b2}.tg-s2{color:#c44e00}.tg-s3{color:#00805e}.tg-s4{color:#a8407f}.tg-s5{color:#94710a}.tg-s6{color:#4a3fb0}.tg-s7{color:#2b8fc7}
.tg-p0{color:#0b3c5d}.tg-p1{color:#e0a100}.tg-p2{color:#c44e00}.tg-p3{color:#4f9fd1}.tg-p4{color:#c3ccd6}.tg-p5{color:#a8407f}
@media screen and (prefers-color-scheme:dark){.tg-chart text{fill:#e6edf3}.tg-chart .soft{fill:#9aa5b1}.tg-chart .halo,.tg-chart .mark{stroke:#0f1419}.tg-chart .grid{stroke:#30363d}.tg-chart .axis,.tg-chart .leader,.tg-chart .front{stroke:#9aa5b1}.tg-chart .paper{fill:#0f1419}
.tg-s0{color:#e6edf3}.tg-s1{color:#4fa8e0}.tg-s2{color:#f58a4b}.tg-s3{color:#2fc39a}.tg-s4{color:#e08bbd}.tg-s5{color:#e3b341}.tg-s6{color:#a59bf5}.tg-s7{color:#7fd0f7}
.tg-p0{color:#9ecbf0}.tg-p1{color:#f0c24b}.tg-p2{color:#e2733a}.tg-p3{color:#3578ad}.tg-p4{color:#56616d}.tg-p5{color:#e08bbd}}
</style>)";

// Five dashes and seven colours share no factor: 35 series differ in the pair.
constexpr std::array<const char*, 5> kDashes = {"", "7 3", "2 3", "9 3 2 3", "4 2"};
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

std::size_t index(int style, std::size_t count) { return static_cast<std::size_t>(style) % count; }

}  // namespace

double text_width(std::string_view utf8) {
  return 0.58 * kFontSize * static_cast<double>(display_width(utf8));
}

// The colour of the baseline is never given away to a later series.
std::string style_class(int style) {
  return fmt::format("tg-s{}", style == 0 ? 0 : 1 + index(style - 1, kStyles - 1));
}

std::string dash_attribute(int style) {
  const std::string_view dash = kDashes[index(style, kDashes.size())];
  return dash.empty() ? std::string() : fmt::format(R"( stroke-dasharray="{}")", dash);
}

void Canvas::text(double x, double y, std::string_view content, Anchor anchor,
                  std::string_view classes) {
  static constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
  raw(fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y,
                  kAnchors[static_cast<std::size_t>(anchor)], classes, escape_markup(content)));
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view classes) {
  raw(fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", x1, y1,
                  x2, y2, classes));
}

void Canvas::marker(double x, double y, int style) {
  raw(fmt::format(R"-(<path class="mark {}" transform="translate({:.1f} {:.1f})" d="{}"/>)-",
                  style_class(style), x, y, kMarkers[index(style, kMarkers.size())]));
}

double Canvas::legend(double top, const std::vector<std::string>& names,
                      const std::vector<int>& styles, bool with_line) {
  double x = kMargin, y = top + kLineHeight / 2;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double width = kSample + 6 + text_width(names[i]);
    if (x > kMargin && x + width > kWidth - kMargin) {
      x = kMargin;
      y += kLineHeight;
    }
    if (with_line) {
      raw(fmt::format(R"(<path class="curve {}"{} d="M{:.1f} {:.1f}h{}"/>)", style_class(styles[i]),
                      dash_attribute(styles[i]), x, y, kSample));
    }
    marker(x + kSample / 2, y, styles[i]);
    text(x + kSample + 6, y, names[i]);
    x += width + 14;
  }
  return y + kLineHeight / 2;
}

double Canvas::category_legend(double top, const std::vector<std::string>& names) {
  double x = kMargin, y = top + kLineHeight / 2;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double width = 17 + text_width(names[i]);
    if (x > kMargin && x + width > kWidth - kMargin) {
      x = kMargin;
      y += kLineHeight;
    }
    raw(fmt::format(
        R"(<rect class="part tg-p{}" x="{:.1f}" y="{:.1f}" width="12" height="12" rx="2"/>)",
        index(static_cast<int>(i), kCategories), x, y - 6));
    text(x + 17, y, names[i]);
    x += width + 14;
  }
  return y + kLineHeight / 2;
}

std::string Canvas::finish(double height) const {
  const std::string title = escape_markup(title_);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tg-chart\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "role=\"img\" aria-label=\"{}\"><title>{}</title>{}<rect class=\"paper\" "
      "width=\"100%\" height=\"100%\"/>{}</svg>\n",
      kWidth, height, title, title, kStyleSheet, body_);
}

Frame draw_frame(Canvas& canvas, const Axis& x, const AxisRange& x_range, const Axis& y,
                 const AxisRange& y_range, double plot_height) {
  double tick_width = 0;
  for (const Tick& tick : y_range.ticks) tick_width = std::max(tick_width, text_width(tick.text));
  const double top = kMargin + kLineHeight + 6;
  const Box plot{kMargin + tick_width + 6, top, kWidth - 2 * kMargin, top + plot_height};
  Frame frame{plot, Scale(x_range, plot.left, plot.right), Scale(y_range, plot.bottom, plot.top)};

  canvas.text(kMargin, kMargin + kLineHeight / 2, y.label, Anchor::kStart, "soft");
  for (const Tick& tick : y_range.ticks) {
    const double at = frame.y(tick.value);
    canvas.line(plot.left, at, plot.right, at, "grid");
    canvas.text(plot.left - 6, at, tick.text, Anchor::kEnd, "soft");
  }
  double free_from = 0;  // labels that would touch their neighbour are left out
  for (const Tick& tick : x_range.ticks) {
    const double at = frame.x(tick.value), half = text_width(tick.text) / 2;
    canvas.line(at, plot.bottom, at, plot.bottom + 4, "axis");
    if (at - half < free_from) continue;
    canvas.text(at, plot.bottom + 13, tick.text, Anchor::kMiddle, "soft");
    free_from = at + half + 4;
  }
  canvas.line(plot.left, plot.bottom, plot.right, plot.bottom, "axis");
  canvas.text((plot.left + plot.right) / 2, plot.bottom + 13 + kLineHeight, x.label,
              Anchor::kMiddle, "soft");
  return frame;
}

double frame_bottom(const Frame& frame) { return frame.plot.bottom + 13 + 1.5 * kLineHeight; }

}  // namespace tritgrad::svg
