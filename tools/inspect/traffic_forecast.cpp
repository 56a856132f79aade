#include "tools/inspect/traffic_forecast.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/check.h"
#include "models/footprint.h"
#include "models/training/parallel_run.h"
#include "optim/parallel/wire_codes.h"
#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

// A way on some ranks. Without a forecast the way cannot have so many parts of a batch.
struct TrafficRow {
  TrafficWay way;
  int ranks;
  int parts;
  std::optional<TrafficForecast> forecast;
  double parameters;

  double total() const { return static_cast<double>(forecast->total()); }
  // Bytes of gradients in fp16 that are all-reduced by a ring, the usual way, over those of this
  // one.
  double fp16_ratio() const {
    const double fp16 = 4.0 * parameters * (ranks - 1) / ranks;
    return forecast->total() > 0 ? fp16 / total() : 0.0;
  }
  double seconds(double link) const { return total() * 8.0 / (link * 1e9); }
};

std::vector<TrafficRow> rows_of(const TrafficQuestion& question) {
  const Recipe dense = load_recipe("fp32");
  const auto parameters = static_cast<double>(
      forecast_footprint(plan_model(question.model, 0, 0, dense), dense).parameters);
  std::vector<TrafficRow> rows;
  for (const int ranks : question.ranks) {
    const int parts = question.parts == 0 ? ranks : question.parts;
    check(parts % ranks == 0, "--micro-batches ", parts, ": ", ranks,
          " ranks cannot share them evenly; give a multiple of ", ranks);
    for (const TrafficWay& way : traffic_ways()) {
      TrafficRow row{way, ranks, parts, std::nullopt, parameters};
      if (votes_fit(plan_model(question.model, 0, 0, way.recipe), way.recipe.updates(), way.spec,
                    parts)) {
        row.forecast = forecast_traffic(way, question.model, ranks, parts);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<std::string> cells_of(const TrafficRow& row, const std::vector<double>& links) {
  const auto bytes = [](std::int64_t n) { return human_bytes(static_cast<double>(n)); };
  std::vector<std::string> cells = {row.way.name, row.way.recipe.name, std::to_string(row.ranks)};
  if (!row.forecast) {
    cells.resize(cells.size() + 4 + links.size(), "-");
    return cells;
  }
  const std::vector<std::string> numbers = {
      bytes(row.forecast->total()), fmt::format("{:.3f}", row.total() / row.parameters),
      fmt::format("{:.1f}", row.fp16_ratio()), bytes(row.forecast->state)};
  cells.insert(cells.end(), numbers.begin(), numbers.end());
  for (const double link : links) cells.push_back(significant(1e3 * row.seconds(link), 3));
  return cells;
}

}  // namespace

std::vector<TrafficWay> traffic_ways() {
  std::vector<TrafficWay> ways;
  const auto add = [&](const char* name, const char* recipe, ParallelMethod method,
                       const std::vector<std::string>& overrides = {}) -> TrafficWay& {
    ParallelSpec spec;
    spec.method = method;
    ways.push_back({name, joint_recipe(spec, load_recipe(recipe, overrides)), spec});
    return ways.back();
  };
  add("allreduce, fp32", "fp32", ParallelMethod::kAllreduce);
  add("allreduce, bf16", "fp32", ParallelMethod::kAllreduce, {"gradient_format=bf16"});
  add("votes: int8 gradients of latent8", "latent8", ParallelMethod::kVotes);
  add("votes: mean", "votes", ParallelMethod::kVotes);
  add("votes: majority", "votes", ParallelMethod::kVotes).spec.majority = true;
  TrafficWay whole = add("apmsqueeze", "fp32", ParallelMethod::kApmsqueeze);
  whole.warmup = *whole.spec.warmup;
  whole.name = concat("apmsqueeze with its warm-up, ", whole.warmup, " of the steps");
  ways.push_back(std::move(whole));
  return ways;
}

TrafficForecast forecast_traffic(const TrafficWay& way, const std::string& model, int ranks,
                                 int parts) {
  return forecast_traffic(plan_model(model, 0, 0, way.recipe), way.recipe.updates(), way.spec,
                          ranks, parts, way.recipe.gradient_format)
      .with_warmup(way.warmup);
}

std::string traffic_table(const TrafficQuestion& question) {
  std::vector<Column> columns = {{"method"},
                                 {"recipe"},
                                 {"ranks", Align::kRight},
                                 {"a step", Align::kRight},
                                 {"B/param", Align::kRight},
                                 {"fp16 / this", Align::kRight},
                                 {"error feedback", Align::kRight}};
  for (const double link : question.links) {
    columns.push_back({fmt::format("{:g} Gbit/s", link), Align::kRight, "ms a step"});
  }
  Table table(columns);
  bool votes_end = false;
  for (const TrafficRow& row : rows_of(question)) {
    table.add_row(cells_of(row, question.links));
    votes_end = votes_end || !row.forecast;
  }
  std::string text =
      fmt::format("{}: what a rank sends for a step\n\n{}", question.model, table.render()) +
      "\nfp16 / this: gradients in fp16, all-reduced by a ring, over the total. "
      "Milliseconds: bytes over the link's rate.\n";
  if (votes_end) {
    text += fmt::format("-: sums of votes have 8 bits, at most {} micro-batches.\n", kMostVotes);
  }
  return text;
}

std::string traffic_json(const TrafficQuestion& question) {
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const TrafficRow& row : rows_of(question)) {
    nlohmann::ordered_json json = {{"name", row.way.name},
                                   {"method", method_name(row.way.spec.method)},
                                   {"recipe", row.way.recipe.name},
                                   {"ranks", row.ranks},
                                   {"micro_batches", row.parts}};
    if (!row.forecast) {
      json["most_micro_batches"] = kMostVotes;
      methods.push_back(std::move(json));
      continue;
    }
    json["gradient_bytes"] = row.forecast->gradients;
    json["warmup_gradient_bytes"] = row.forecast->warmup;
    json["warmup_share"] = row.way.warmup;
    json["statistics_bytes"] = row.forecast->statistics;
    json["sums_bytes"] = row.forecast->sums;
    json["bytes_per_step"] = row.forecast->total();
    json["bytes_per_parameter"] = row.total() / row.parameters;
    json["fp16_ratio"] = row.fp16_ratio();
    json["error_feedback_bytes"] = row.forecast->state;
    nlohmann::ordered_json seconds = nlohmann::ordered_json::array();
    for (const double link : question.links) seconds.push_back(row.seconds(link));
    json["seconds_on_links"] = std::move(seconds);
    methods.push_back(std::move(json));
  }
  return nlohmann::ordered_json{
      {"model", question.model}, {"links_gbit", question.links}, {"methods", methods}}
      .dump(2);
}

}  // namespace tritgrad
