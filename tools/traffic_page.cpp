// The page of `tritgrad traffic`: formulas, measurements beside them, and what follows for large
// jobs.
#include <fmt/format.h>

#include <cmath>

#include "tools/markup.h"
#include "tools/numbers.h"
#include "tools/report_style.h"
#include "tools/svg.h"
#include "tools/traffic.h"

namespace tritgrad {
namespace {

constexpr int kRanks[] = {8, 16, 32, 64, 128, 256, 512, 1024};
constexpr double kSizes[] = {1e9, 1e10, 1e11, 1e12};
constexpr double kGigabits[] = {1.0, 10.0, 100.0};

std::string element(const char* tag, const std::string& text) {
  return fmt::format("<{0}>{1}</{0}>\n", tag, escape_markup(text));
}

std::string row(const char* tag, const std::vector<std::string>& cells) {
  std::string html =
      fmt::format("<tr><th scope=\"{}\">{}</th>", tag == std::string("th") ? "col" : "row",
                  escape_markup(cells.front()));
  for (std::size_t i = 1; i < cells.size(); ++i) {
    html += fmt::format("<{0}>{1}</{0}>", tag, escape_markup(cells[i]));
  }
  return html + "</tr>\n";
}

std::string table(const std::vector<std::string>& head, const std::string& rows) {
  return "<div class=\"scroll\"><table>\n<thead>" + row("th", head) + "</thead>\n<tbody>\n" + rows +
         "</tbody></table></div>\n";
}

// Four square matrices with about so many weights together.
std::string square_model(double parameters) {
  const auto width = std::lround(std::sqrt(parameters / 4.0));
  return fmt::format("mlp:{0}-{0}-{0}-{0}-{0}", width);
}

double parameters_of(const std::string& model) {
  const Recipe recipe = load_recipe("fp32");
  double parameters = 0.0;
  for (const ParameterSpec& parameter : plan_model(model, 0, 0, recipe)) {
    if (parameter.counted()) parameters += static_cast<double>(parameter.shape.size());
  }
  return parameters;
}

std::int64_t bytes_of(const TrafficWay& way, const std::string& model, int ranks) {
  return forecast_traffic(model, 0, 0, way.recipe, way.spec, ranks, ranks).total();
}

std::string formulas() {
  std::string html = "<h2>Formulas</h2>\n";
  html +=
      element("p",
              "Bytes that one rank sends for one step, with d elements, N ranks, P parts "
              "(micro-batches) of the batch and f = (N - 1) / N. Up to what chunks of whole bytes "
              "and scales add, which the tables below count to the byte.");
  html += "<ul>\n";
  for (const char* formula :
       {"sums of floats (allreduce; apmsqueeze's warm-up): 2 f d b, b = 4 or 2",
        "votes of weights: f d (s + r), s = 1/8 for one vote a rank (1/5 where some abstain), r = "
        "1/2 for sums up to 7, 5/8 up to 15, 3/4 up to 31, 1 up to 127; 1/5 for majorities",
        "int8 gradients: 2 f d (1 + 2 / 32)",
        "momentum as signs: 2 f d / 8 + 8 (N - 1) for each tensor",
        "scales, biases and norms beside votes, and running statistics of batch norm, part by "
        "part: 4 d (N - 1) P / N",
        "for comparison, gradients in fp16 all-reduced by a ring: 4 f d"}) {
    html += element("li", formula);
  }
  html += "</ul>\n";
  html +=
      element("p",
              "With a share w of the steps as warm-up, apmsqueeze sends w times the fp32 sum and "
              "1 - w times the signs. Seconds are bytes times 8 over the rate of a rank's link, "
              "which sends and receives at once; computing and latency come on top.");
  return html;
}

std::string comparison(const std::string& model) {
  const double parameters = parameters_of(model);
  std::string rows;
  for (const TrafficWay& way : traffic_ways()) {
    for (int ranks : {2, 4, 8}) {
      const TrafficForecast forecast =
          forecast_traffic(model, 0, 0, way.recipe, way.spec, ranks, ranks);
      const auto total = static_cast<double>(forecast.total());
      rows += row("td", {way.name, way.recipe.name, std::to_string(ranks), human_bytes(total),
                         fmt::format("{:.3f}", total / parameters),
                         fmt::format("{:.1f}", fp16_bytes(parameters, ranks) / total),
                         fmt::format("{:.2f}", static_cast<double>(forecast.state) / parameters)});
    }
  }
  return fmt::format("<h2>A step of {}</h2>\n", escape_markup(model)) +
         table({"method", "recipe", "ranks", "bytes a step", "B/param", "times less than fp16",
                "error feedback, B/param"},
               rows);
}

std::string measurements(const std::vector<RunResult>& runs) {
  std::string html = "<h2>Measured</h2>\n";
  if (runs.empty()) return html + element("p", "No result was given (--measured FILE.json).");
  std::string rows;
  for (const RunResult& run : runs) {
    const Traffic& traffic = *run.traffic;
    const double off = 100.0 * (static_cast<double>(traffic.last_step_bytes) /
                                    static_cast<double>(traffic.last_step_forecast) -
                                1.0);
    rows += row("td", {traffic.method, run.recipe, run.model, std::to_string(traffic.ranks),
                       std::to_string(traffic.last_step_bytes),
                       std::to_string(traffic.last_step_forecast), fmt::format("{:+.2f} %", off)});
  }
  return html +
         table({"method", "recipe", "model", "ranks", "last step, bytes", "by formula", "off"},
               rows) +
         element("p",
                 "Votes that abstain (gradients that are exactly 0) make trits of their rank's "
                 "signs, which the formula leaves out.");
}

std::string figure(double size) {
  LineChart chart;
  chart.title = fmt::format("{:.0e} parameters, 10 Gbit/s", size);
  chart.x = {.label = "ranks", .log = true};
  chart.y = {.label = "seconds a step on the wire", .log = true};
  const std::string model = square_model(size);
  int style = 0;
  for (const TrafficWay& way : traffic_ways()) {
    LineSeries series;
    series.name = way.name;
    series.style = style++;
    for (int ranks : kRanks) {
      // Sums of votes have 8 bits.
      if (way.spec.method == ParallelMethod::kVotes && ranks > kMostVotes) break;
      series.x.push_back(ranks);
      series.y.push_back(static_cast<double>(bytes_of(way, model, ranks)) * 8.0 / 1e10);
    }
    chart.series.push_back(series);
  }
  return "<figure>\n" + element("h3", chart.title) + render_svg(chart) + "</figure>\n";
}

std::string extrapolation() {
  std::string html = "<h2>Large jobs</h2>\n";
  html +=
      element("p",
              "Perceptrons of four square matrices, one part for each rank. Votes end at 127 "
              "parts, whose sums fill 8 bits. What is summed part by part grows with the ranks, "
              "which shows where matrices are small.");
  html += "<div class=\"figures\">\n";
  for (double size : kSizes) html += figure(size);
  html += "</div>\n";
  std::string rows;
  for (double size : kSizes) {
    const std::string model = square_model(size);
    for (const TrafficWay& way : traffic_ways()) {
      for (int ranks : {8, 64, 1024}) {
        if (way.spec.method == ParallelMethod::kVotes && ranks > kMostVotes) continue;
        const auto bytes = static_cast<double>(bytes_of(way, model, ranks));
        std::vector<std::string> cells{fmt::format("{:.0e}", size), way.name, std::to_string(ranks),
                                       human_bytes(bytes)};
        for (double gigabits : kGigabits) {
          cells.push_back(significant(bytes * 8.0 / (gigabits * 1e9), 3));
        }
        rows += row("td", cells);
      }
    }
  }
  return html + table({"parameters", "method", "ranks", "bytes a step", "s at 1 Gbit/s",
                       "s at 10 Gbit/s", "s at 100 Gbit/s"},
                      rows);
}

}  // namespace

std::string render_page(const TrafficPage& page) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<title>What a step sends</title>\n" +
         report_style() + "</head>\n<body>\n<main>\n<h1>What a step sends</h1>\n<p>Made by <code>" +
         escape_markup(page.command) + "</code>.</p>\n" + formulas() + comparison(page.model) +
         measurements(page.measured) + extrapolation() + "</main>\n</body>\n</html>\n";
}

}  // namespace tritgrad
