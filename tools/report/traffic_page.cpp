// The page of `tritgrad traffic`: formulas, measurements beside them, and what follows for large
// jobs.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "tools/report/number_text.h"
#include "tools/report/svg.h"
#include "tools/report/traffic.h"

namespace tritgrad {
namespace {

constexpr int kRanks[] = {8, 16, 32, 64, 128, 256, 512, 1024};
constexpr double kSizes[] = {1e9, 1e10, 1e11, 1e12};
constexpr double kGigabits[] = {1.0, 10.0, 100.0};

// Four square matrices with about so many weights together.
std::string square_model(double parameters) {
  const auto width = std::lround(std::sqrt(parameters / 4.0));
  return fmt::format("mlp:{0}-{0}-{0}-{0}-{0}", width);
}

std::int64_t bytes_of(const TrafficWay& way, const std::string& model, int ranks) {
  return forecast_traffic(way, model, ranks, ranks).total();
}

void add_formulas(Page& page) {
  page.blocks.push_back(Heading{2, "Formulas"});
  page.blocks.push_back(Paragraph{
      "Bytes that one rank sends for one step, with d elements, N ranks, P parts "
      "(micro-batches) of the batch and f = (N - 1) / N. Up to what chunks of whole bytes "
      "and scales add, which the tables below count to the byte."});
  page.blocks.push_back(Bullets{
      {"sums of floats (allreduce; apmsqueeze's warm-up; running statistics of batch norm with "
       "both): 2 f d b, b = 4 or 2",
       "votes of weights: f d (s + r), s = 1/8 for one vote a rank (1/5 where some abstain), r = "
       "1/2 for sums up to 7, 5/8 up to 15, 3/4 up to 31, 1 up to 127; 1/5 for majorities",
       "int8 gradients: 2 f d (1 + 2 / 32)",
       "momentum as signs: 2 f d / 8 + 8 (N - 1) for each tensor",
       "scales, biases, norms and running statistics of batch norm beside votes, part by part: "
       "4 d (N - 1) P / N",
       "for comparison, gradients in fp16 all-reduced by a ring: 4 f d"}});
  page.blocks.push_back(
      Paragraph{"With a share w of the steps as warm-up, apmsqueeze sends w times the fp32 sum and "
                "1 - w times the signs in the mean. Seconds are bytes times 8 over the rate of a "
                "rank's link, "
                "which sends and receives at once; computing and latency come on top."});
}

void add_comparison(Page& page, const TrafficReport& report) {
  const std::string& model = report.model;
  const double parameters = parameters_of(model);
  PageTable table;
  table.heads = {"method",
                 "recipe",
                 "ranks",
                 "micro-batches",
                 "bytes a step",
                 "B/param",
                 "times less than fp16",
                 "error feedback, B/param"};
  // What was asked about, and some jobs beside it.
  const std::set<std::pair<int, int>> jobs = {{2, 2}, {4, 4}, {8, 8}, {report.ranks, report.parts}};
  for (const TrafficWay& way : traffic_ways()) {
    for (const auto& [ranks, parts] : jobs) {
      if (!can_have(way, model, parts)) continue;
      const TrafficForecast forecast = forecast_traffic(way, model, ranks, parts);
      const auto total = static_cast<double>(forecast.total());
      table.rows.push_back(
          {way.name, way.recipe.name, std::to_string(ranks), std::to_string(parts),
           human_bytes(total), fmt::format("{:.3f}", total / parameters),
           total > 0.0 ? fmt::format("{:.1f}", fp16_bytes(parameters, ranks) / total) : kMissing,
           fmt::format("{:.2f}", static_cast<double>(forecast.state) / parameters)});
    }
  }
  page.blocks.push_back(Heading{2, "A step of " + model});
  page.blocks.push_back(table);
}

std::string deviation(double measured, double forecast) {
  return forecast > 0.0 ? fmt::format("{:+.2f} %", 100.0 * (measured / forecast - 1.0)) : "-";
}

void add_measurements(Page& page, const std::vector<RunResult>& runs) {
  page.blocks.push_back(Heading{2, "Measured"});
  if (runs.empty()) {
    page.blocks.push_back(Paragraph{"No result was given (--measured FILE.json)."});
    return;
  }
  PageTable table;
  table.heads = {
      "method", "recipe",           "model",      "ranks", "mean of the steps, bytes", "by formula",
      "off",    "last step, bytes", "by formula", "off"};
  for (const RunResult& run : runs) {
    const Traffic& traffic = *run.traffic;
    const auto last = static_cast<double>(traffic.last_step_bytes);
    const auto last_forecast = static_cast<double>(traffic.last_step_forecast);
    table.rows.push_back({traffic.method, run.recipe, run.model, std::to_string(traffic.ranks),
                          fmt::format("{:.0f}", traffic.bytes_per_step),
                          fmt::format("{:.0f}", traffic.forecast_per_step),
                          deviation(traffic.bytes_per_step, traffic.forecast_per_step),
                          fmt::format("{:.0f}", last), fmt::format("{:.0f}", last_forecast),
                          deviation(last, last_forecast)});
  }
  page.blocks.push_back(table);
  page.blocks.push_back(
      Paragraph{"Votes that abstain (gradients that are exactly 0) make trits of their rank's "
                "signs, which the formula leaves out."});
}

Figure draw(double size) {
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
      if (!can_have(way, model, ranks)) break;
      series.x.push_back(ranks);
      series.y.push_back(static_cast<double>(bytes_of(way, model, ranks)) * 8.0 / 1e10);
    }
    chart.series.push_back(series);
  }
  return {fmt::format("parameters-1e{:.0f}", std::log10(size)), chart.title, render_svg(chart)};
}

PageTable large_jobs() {
  PageTable table;
  table.heads = {"method", "parameters", "ranks", "bytes a step"};
  for (double gigabits : kGigabits) {
    table.heads.push_back(fmt::format("s at {:g} Gbit/s", gigabits));
  }
  for (double size : kSizes) {
    const std::string model = square_model(size);
    for (const TrafficWay& way : traffic_ways()) {
      for (int ranks : {8, 64, 1024}) {
        if (!can_have(way, model, ranks)) continue;
        const auto bytes = static_cast<double>(bytes_of(way, model, ranks));
        std::vector<std::string>& row = table.rows.emplace_back();
        row = {way.name, fmt::format("{:.0e}", size), std::to_string(ranks), human_bytes(bytes)};
        for (double gigabits : kGigabits) {
          row.push_back(significant(bytes * 8.0 / (gigabits * 1e9), 3));
        }
      }
    }
  }
  return table;
}

void add_large_jobs(Page& page) {
  page.blocks.push_back(Heading{2, "Large jobs"});
  page.blocks.push_back(
      Paragraph{"Perceptrons of four square matrices, one part for each rank. Votes of "
                "weights end at 127 parts, whose sums fill 8 bits. What is summed part by part "
                "grows with the ranks, "
                "which shows where matrices are small."});
  Pictures pictures;
  for (double size : kSizes) pictures.figures.push_back(draw(size));
  page.blocks.push_back(pictures);
  page.blocks.push_back(Heading{3, "Seconds a step on the wire"});
  page.blocks.push_back(large_jobs());
}

}  // namespace

Page make_page(const TrafficReport& report) {
  Page page;
  page.title = "What a step sends";
  page.blocks.push_back(Code{report.command});
  add_formulas(page);
  add_comparison(page, report);
  add_measurements(page, report.measured);
  add_large_jobs(page);
  return page;
}

}  // namespace tritgrad
