#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "engine/check.h"
#include "tests/support/markup_balance.h"
#include "tools/report/svg.h"
#include "tools/report/svg_axis.h"

namespace tritgrad::test::test_svg {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> all;
  for (const Tick& tick : ticks) all.push_back(tick.text);
  return all;
}

TEST_CASE("axis: round numbers from end to end") {
  const AxisRange range = fit_axis({97.71, 98.63}, false);
  CHECK(texts(range.ticks) ==
        std::vector<std::string>{"97.6", "97.8", "98.0", "98.2", "98.4", "98.6", "98.8"});
  CHECK(fit_axis({99.1, 99.97}, false).high == doctest::Approx(100));
  CHECK(texts(fit_axis({-1, 1}, false, 4).ticks) ==
        std::vector<std::string>{"−1.0", "−0.5", "0.0", "0.5", "1.0"});
}

TEST_CASE("axis: logarithmic ticks") {
  CHECK(texts(fit_axis({0.7, 16}, true).ticks) ==
        std::vector<std::string>{"0.5", "1", "2", "5", "10", "20"});
  CHECK(texts(fit_axis({0.0011, 0.4}, true).ticks) ==
        std::vector<std::string>{"0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"});
  CHECK(fit_axis({-1, 0, 5}, true).low > 0);
}

TEST_CASE("axis: any data gives at least two ascending ticks inside the range") {
  const double values[] = {0,
                           1,
                           -1,
                           100,
                           1e-300,
                           1e300,
                           -1e300,
                           0.1,
                           1e15,
                           kNan,
                           std::numeric_limits<double>::infinity()};
  for (const double a : values) {
    for (const double b : values) {
      for (const bool log : {false, true}) {
        const AxisRange range = fit_axis({a, b}, log);
        CAPTURE(a);
        CAPTURE(b);
        CAPTURE(log);
        CHECK(range.low < range.high);
        CHECK(range.ticks.size() >= 2);
        CHECK(range.ticks.size() <= 40);
        for (std::size_t i = 0; i < range.ticks.size(); ++i) {
          CHECK(range.ticks[i].value >= range.low);
          CHECK(range.ticks[i].value <= range.high);
          if (i > 0) CHECK(range.ticks[i].value > range.ticks[i - 1].value);
        }
      }
    }
  }
}

TEST_CASE("scale: ends to ends, clamped outside, logarithms on a log axis") {
  const Scale linear({0, 10, false, {}}, 100, 200);
  CHECK(linear(0) == 100);
  CHECK(linear(5) == 150);
  CHECK(linear(20) == 200);
  const Scale log({1, 100, true, {}}, 0, 1);
  CHECK(log(10) == doctest::Approx(0.5));
  CHECK(log(0) == 0);
}

TEST_CASE("svg: pictures are well formed, with or without data") {
  CHECK(markup_error(render_svg(LineChart{})) == "");
  CHECK(markup_error(render_svg(ScatterChart{})) == "");
  CHECK(markup_error(render_svg(StackedBars{})) == "");
  LineChart lines{"<&>", {"x"}, {"y", true}, {{"a", 0, {1, 2, 3}, {1, kNan, 0.01}, {}, {}}}};
  CHECK(markup_error(render_svg(lines)) == "");
}

TEST_CASE("svg: a gap in the data interrupts the line") {
  const LineChart chart{"t", {"x"}, {"y"}, {{"a", 0, {1, 2, 3, 4, 5}, {1, 2, kNan, 4, 5}, {}, {}}}};
  const std::string svg = render_svg(chart);
  std::smatch match;
  REQUIRE(std::regex_search(svg, match, std::regex("class=\"curve tg-s0\" d=\"([^\"]*)\"")));
  const std::string path = match[1];
  CHECK(std::count(path.begin(), path.end(), 'M') == 2);
  CHECK(std::count(path.begin(), path.end(), 'L') == 2);
}

TEST_CASE("svg: series of the first 35 styles differ in colour or dash, none has the baseline's") {
  LineChart chart{"t", {"x"}, {"y"}, {}};
  for (int style = 0; style <= 35; ++style)
    chart.series.push_back({"s", style, {1, 2}, {1, 2}, {}, {}});
  const std::string svg = render_svg(chart);
  // Curves are drawn twice: in the plot, with their titles, and in the legend.
  const std::regex curve(
      "class=\"curve (tg-s[0-9])\"( stroke-dasharray=\"[^\"]*\")? d=\"[^\"]*\"><title>");
  std::vector<std::string> looks;
  int baselines = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), curve), end; it != end; ++it) {
    baselines += (*it)[1] == "tg-s0" ? 1 : 0;
    looks.push_back((*it)[1].str() + (*it)[2].str());
  }
  CHECK(looks.size() == 36);
  CHECK(baselines == 1);
  std::sort(looks.begin(), looks.end());
  CHECK(std::adjacent_find(looks.begin(), looks.end()) == looks.end());
}

TEST_CASE("svg: widths of stacked parts are in proportion to their values") {
  const StackedBars chart{"t", "u", {"a", "b"}, {{"bar", {10, 5}}}};
  const std::string svg = render_svg(chart);
  // Only the parts of bars have two decimals of width.
  const std::regex part(
      "class=\"part tg-p[01]\" x=\"[0-9.]+\" y=\"[0-9.]+\" width=\"([0-9]+\\.[0-9]{2})\"");
  std::vector<double> widths;
  for (std::sregex_iterator it(svg.begin(), svg.end(), part), end; it != end; ++it) {
    widths.push_back(std::stod((*it)[1]) + 1.0);  // plus the hair of paper
  }
  REQUIRE(widths.size() == 2);
  // Both widths are printed to 0.005, so the ratio is off by at most 0.005 (1 + 2) / 100 or so.
  CHECK(std::abs(widths[0] / widths[1] - 2.0) < 2e-4);
}

TEST_CASE("svg: every point is named in the legend and where the mouse rests on it") {
  ScatterChart chart{"t", {"x"}, {"y"}, {}};
  for (int i = 0; i < 20; ++i) {
    chart.points.push_back(
        {"label-" + std::to_string(i), i, 1.0 + 0.05 * i, 50.0 + 2.5 * (i % 4), 1.5});
  }
  chart.points.push_back({"corner", 0, 3, 60, std::nullopt});
  const std::string svg = render_svg(chart);
  CHECK(markup_error(svg) == "");
  for (const ScatterPoint& point : chart.points) {
    CAPTURE(point.name);
    CHECK(svg.find("<title>" + point.name + ": ") != std::string::npos);
  }
  struct Box {
    double left, right, middle;
  };
  std::vector<Box> boxes;
  const std::regex label(
      "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" text-anchor=\"start\" class=\"\">"
      "(label-[0-9]+|corner)<");
  for (std::sregex_iterator it(svg.begin(), svg.end(), label), end; it != end; ++it) {
    // 0.58 of the font's 12 units a letter, as an upper estimate.
    const double x = std::stod((*it)[1]),
                 width = 0.58 * 12 * static_cast<double>((*it)[3].length());
    boxes.push_back({x, x + width, std::stod((*it)[2])});
  }
  CHECK(boxes.size() == chart.points.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    CHECK(boxes[i].left >= 0);
    CHECK(boxes[i].right <= 480);
    for (std::size_t j = 0; j < i; ++j) {
      // Positions are rounded to a tenth; a line of text is 14 high.
      CHECK((boxes[i].left >= boxes[j].right - 0.2 || boxes[j].left >= boxes[i].right - 0.2 ||
             std::abs(boxes[i].middle - boxes[j].middle) >= 13.8));
    }
  }
}

TEST_CASE("svg: the front is drawn as stairs that end at the edge") {
  ScatterChart chart{"t", {"x"}, {"y"}, {}};
  chart.points = {{"a", 0, 1, 10, std::nullopt}, {"b", 1, 2, 20, std::nullopt}};
  CHECK(render_svg(chart).find("class=\"front\"") == std::string::npos);
  chart.front = {{1, 10}, {2, 20}};
  const std::string svg = render_svg(chart);
  // Straight on to the next point's bytes, then up to its accuracy, and on to the edge.
  CHECK(std::regex_search(
      svg, std::regex("class=\"front\" d=\"M[0-9.]+ [0-9.]+H[0-9.]+V[0-9.]+H464.0\"")));
}

TEST_CASE("svg: mismatched lengths are refused with the numbers") {
  CHECK_THROWS_WITH_AS(render_svg(LineChart{"t", {}, {}, {{"a", 0, {1, 2}, {1}, {}, {}}}}),
                       "Series a has 2 x and 1 y values; give one y for each x", Error);
  CHECK_THROWS_AS(render_svg(LineChart{"t", {}, {}, {{"a", 0, {1}, {1}, {1}, {}}}}), Error);
  CHECK_THROWS_AS(render_svg(StackedBars{"t", "u", {"a", "b"}, {{"bar", {1}}}}), Error);
}

TEST_CASE("svg: a marker stands where it is asked for, at the height of its number") {
  LineChart chart{
      "t", {"x", false, {}}, {"y", true, {0.1, 10.0}}, {{"a", 1, {1, 2}, {0.1, 10}, {}, {}}}};
  const auto markers = [&] {  // that of the legend included
    const std::string svg = render_svg(chart);
    std::size_t count = 0;
    for (std::size_t at = 0; (at = svg.find("class=\"mark", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  const std::string plain = render_svg(chart);
  CHECK(markers() == 2);
  chart.series[0].mark = 10.0;
  CHECK(render_svg(chart) == plain);
  chart.series[0].mark = 1.0;
  CHECK(render_svg(chart) != plain);
  CHECK(markers() == 2);
  chart.series[0].mark = kNan;
  CHECK(markers() == 1);
}

}  // namespace
}  // namespace tritgrad::test::test_svg
