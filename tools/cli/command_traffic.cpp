// tritgrad traffic: what data-parallel training sends.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/files/read_file.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/repeat_command.h"
#include "tools/cli/within.h"
#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/table.h"
#include "tools/report/traffic.h"

namespace tritgrad {
namespace {

struct TrafficOptions {
  std::string model = "mlp:784-512-512-10";
  int ranks = 4;
  int parts = 0;  // 0: one for each rank
  std::vector<std::string> measured;
  std::string report;
  std::string json;
};

std::vector<RunResult> read_results(const std::vector<std::string>& paths) {
  std::vector<RunResult> runs;
  for (const std::string& path : paths) {
    try {
      runs.push_back(run_from_json(read_file(path)));
    } catch (const Error& error) {
      fail("--measured '", path, "': ", error.what());
    }
    check(runs.back().traffic.has_value(), "--measured '", path,
          "': it is not the result of a data-parallel run; make it by mpirun ... tritgrad train "
          "--dp METHOD --json FILE");
  }
  return runs;
}

struct Forecasts {
  Table table{{{"method"},
               {"recipe"},
               {"gradients", Align::kRight, "bytes a step"},
               {"statistics", Align::kRight, "bytes a step"},
               {"sums", Align::kRight, "bytes a step"},
               {"total", Align::kRight, "bytes a step"},
               {"B/param", Align::kRight},
               {"fp16 / this", Align::kRight},
               {"error feedback", Align::kRight}}};
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  bool votes_end = false;  // some way cannot have so many parts

  void add(const TrafficWay& way, const TrafficForecast& forecast, double parameters,
           double fp16_ratio) {
    const auto bytes = [](std::int64_t n) { return human_bytes(static_cast<double>(n)); };
    const double per_parameter = static_cast<double>(forecast.total()) / parameters;
    table.add_row({way.name, way.recipe.name, bytes(forecast.gradients), bytes(forecast.statistics),
                   bytes(forecast.sums), bytes(forecast.total()),
                   fmt::format("{:.3f}", per_parameter), fmt::format("{:.1f}", fp16_ratio),
                   bytes(forecast.state)});
    json.push_back({{"name", way.name},
                    {"method", method_name(way.spec.method)},
                    {"recipe", way.recipe.name},
                    {"gradient_bytes", forecast.gradients},
                    {"warmup_gradient_bytes", forecast.warmup},
                    {"warmup_share", way.warmup},
                    {"statistics_bytes", forecast.statistics},
                    {"sums_bytes", forecast.sums},
                    {"bytes_per_step", forecast.total()},
                    {"bytes_per_parameter", per_parameter},
                    {"fp16_ratio", fp16_ratio},
                    {"error_feedback_bytes", forecast.state}});
  }
  void add_impossible(const TrafficWay& way) {
    table.add_row({way.name, way.recipe.name, "-", "-", "-", "-", "-", "-", "-"});
    json.push_back({{"name", way.name},
                    {"method", method_name(way.spec.method)},
                    {"recipe", way.recipe.name},
                    {"most_micro_batches", kMostVotes}});
    votes_end = true;
  }
};

Forecasts forecast_all(const std::string& model, int ranks, int parts) {
  Forecasts forecasts;
  const double parameters = parameters_of(model);
  for (const TrafficWay& way : traffic_ways()) {
    if (!can_have(way, model, parts)) {
      forecasts.add_impossible(way);
      continue;
    }
    const TrafficForecast forecast = forecast_traffic(way, model, ranks, parts);
    const auto total = static_cast<double>(forecast.total());
    forecasts.add(way, forecast, parameters,
                  total > 0.0 ? fp16_bytes(parameters, ranks) / total : 0.0);
  }
  return forecasts;
}

void run_traffic(const CLI::App& app, const TrafficOptions& options) {
  OutputFile output("--json", options.json, kJsonBegins);
  check_report_path(options.report);
  for (const std::string& path : options.measured) {
    std::error_code error;
    check(!std::filesystem::equivalent(path, options.json, error), "--json: '", options.json,
          "' is also read (--measured) and would be replaced; name another file");
  }
  const std::vector<RunResult> measured = read_results(options.measured);
  check(options.measured.empty() || !options.report.empty(),
        "--measured: results are set beside the formulas on a page; add --report FILE");
  const int parts = options.parts == 0 ? options.ranks : options.parts;
  check(parts % options.ranks == 0, "--micro-batches ", parts, ": ", options.ranks,
        " ranks cannot share them evenly; give a multiple of ", options.ranks);
  const Forecasts forecasts = forecast_all(options.model, options.ranks, parts);
  if (options.json != "-") {
    fmt::print("{} on {} ranks, {} micro-batches: what a rank sends for a step\n\n{}",
               options.model, options.ranks, parts, forecasts.table.render());
    fmt::print("\nfp16 / this: gradients in fp16, all-reduced by a ring, over the total.\n");
    if (forecasts.votes_end) {
      fmt::print("-: sums of votes have 8 bits, at most {} micro-batches.\n", kMostVotes);
    }
  }
  const nlohmann::ordered_json json = {{"model", options.model},
                                       {"ranks", options.ranks},
                                       {"micro_batches", parts},
                                       {"methods", forecasts.json}};
  output.write(json.dump(2));
  if (options.report.empty()) return;
  write_page(options.report,
             make_page({repeat_command(app), options.model, options.ranks, parts, measured}));
  if (options.json != "-") fmt::print("report: {}\n", options.report);
}

}  // namespace

void add_traffic_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "traffic", "what data-parallel training sends: forecasts, and a page for large jobs");
  auto options = std::make_shared<TrafficOptions>();
  command->add_option("--model", options->model, "complete, such as mlp:784-512-512-10")
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "processes")
      ->capture_default_str()
      ->check(within(1, 1 << 20));
  command
      ->add_option("--micro-batches", options->parts,
                   "parts of a batch, a multiple of the ranks [one for each]")
      ->check(within(1, 1 << 20));
  command
      ->add_option("--measured", options->measured,
                   "results of 'train --dp METHOD --json FILE', set beside the formulas")
      ->take_all();
  command->add_option("--report", options->report,
                      "write a page to FILE.html, or to FILE.md with pictures in the folder FILE: "
                      "formulas, measurements, 8 to 1024 ranks and 1e9 to 1e12 parameters on 1, 10 "
                      "and 100 Gbit/s");
  command->add_option("--json", options->json, "write as JSON to FILE, - = standard output");
  command->footer(
      "Examples:\n"
      "  tritgrad traffic --model mlp:784-512-512-10 --ranks 4\n"
      "  mpirun -n 2 tritgrad train --data digits --recipe votes --dp votes --json two.json\n"
      "  tritgrad traffic --measured two.json --report traffic.html");
  command->callback([command, options] { run_traffic(*command, *options); });
}

}  // namespace tritgrad
