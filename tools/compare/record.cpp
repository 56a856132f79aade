#include "tools/compare/record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/compare/summary.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson tuning_json(const Tuning& tuning) {
  OrderedJson candidates = OrderedJson::array();
  for (const TuningCandidate& candidate : tuning.candidates) {
    candidates.push_back({{"factor", candidate.factor},
                          {"lr", candidate.lr},
                          {score_key("val", tuning.metric), number(candidate.val_score)},
                          {"diverged", !candidate.val_score},
                          {"seconds", number(candidate.seconds)},
                          {"cached", candidate.cached},
                          {"machine", candidate.machine}});
  }
  return {{"factor", tuning.choice().factor},
          {"lr", tuning.choice().lr},
          {"at_edge", tuning.at_edge()},
          {"candidates", candidates}};
}

OrderedJson summary_json(const RecipeSummary& summary) {
  OrderedJson json;
  json["recipe"] = summary.recipe;
  json["seeds"] = summary.seeds;
  json["diverged"] = summary.diverged;
  const Metric metric = summary.unit.metric;
  const std::string name(key_name(metric));
  json[name + "_mean"] = summary.score ? number(summary.score->mean) : OrderedJson(nullptr);
  json[name + "_std"] = summary.score ? number(summary.score->spread) : OrderedJson(nullptr);
  json[metric == Metric::kAccuracy ? "delta_points" : "delta_" + name] = number(summary.delta);
  json["delta_interval"] =
      summary.delta_interval
          ? OrderedJson({number(summary.delta_interval->low), number(summary.delta_interval->high)})
          : OrderedJson(nullptr);
  json["bytes_per_parameter"] =
      summary.trained() ? number(summary.bytes.total()) : OrderedJson(nullptr);
  json["bytes_per_weight"] = number(summary.bytes_per_weight);
  json["seconds_per_run"] = number(summary.seconds_per_run);
  if (metric == Metric::kBitsPerByte) json["tokens_per_s"] = number(summary.tokens_per_second);
  json["peak_live_bytes"] = number(summary.peak_live_bytes);
  json["tuning"] = summary.tuning ? tuning_json(*summary.tuning) : OrderedJson(nullptr);
  return json;
}

OrderedJson published_json(const PublishedResult& result) {
  return {{"name", result.name},
          {"score", number(result.score)},
          {"spread", number(result.spread)},
          {"bytes_per_parameter", number(result.bytes)},
          {"protocol", result.protocol}};
}

OrderedJson record_json(const ComparisonRecord& record) {
  const Comparison comparison = compare(record);
  OrderedJson json;
  if (!record.title.empty()) json["title"] = record.title;
  json["data"] = record.data;
  json["dataset"] = record.dataset;
  json["model"] = record.model;
  json["command"] = record.command;
  json["seconds"] = number(record.seconds());
  json[std::string(key_name(comparison.unit.metric))] = comparison.score_name;
  json["baseline"] = record.baseline;
  json["recipes"] = OrderedJson::array();
  for (const RecipeSummary& summary : comparison.recipes) {
    json["recipes"].push_back(summary_json(summary));
  }
  for (const PublishedResult& result : record.published) {
    json["published"].push_back(published_json(result));
  }
  json["runs"] = OrderedJson::array();
  for (const RunResult& run : record.runs) json["runs"].push_back(OrderedJson::parse(to_json(run)));
  return json;
}

}  // namespace

double ComparisonRecord::seconds() const {
  double sum = 0.0;
  for (const Tuning& tuning : tunings) {
    for (const TuningCandidate& candidate : tuning.candidates) sum += candidate.seconds;
  }
  for (const RunResult& run : runs) sum += run.seconds;
  return sum;
}

std::string to_json(const std::vector<ComparisonRecord>& records, const std::string& machine) {
  OrderedJson json = {
      {"tritgrad", TRITGRAD_VERSION}, {"machine", machine}, {"comparisons", OrderedJson::array()}};
  for (const ComparisonRecord& record : records) {
    json["comparisons"].push_back(record_json(record));
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tritgrad
