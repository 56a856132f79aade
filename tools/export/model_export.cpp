#include "tools/export/model_export.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/check.h"
#include "engine/files/checkpoint.h"
#include "engine/files/read_file.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "tools/export/language_export.h"
#include "tools/report/score_unit.h"

namespace tritgrad {
namespace {

// The operators of a graph: whether standard ones alone.
constexpr Names<bool, 2> kOnnxOperators{"set of operators",
                                        {{{false, "microsoft"}, {true, "standard"}}}};

// "Accuracy 98.25 %"; of rows without labels no score is known.
std::string score_words(const SelfCheck& check) {
  if (!std::isfinite(check.score_after)) return "Compared with the model";
  return fmt::format("{} {}",
                     check.metric == Metric::kAccuracy ? "Accuracy" : to_text(check.metric),
                     score_unit(check.metric, check.score_after).full_text(check.score_after));
}

// `trained_on` names the data of the run, `report.data` those of the self-check.
std::vector<std::string> provenance_of(const ExportReport& report, const std::string& trained_on,
                                       const std::string& sha256) {
  const SelfCheck& check = report.check;
  return {
      fmt::format("{} with recipe {}, trained on {} for {} steps{}.", report.model, report.recipe,
                  trained_on, report.steps, report.finished ? "" : " (not finished)"),
      fmt::format("{} on {} rows of {}; {} weights of {:.2f} bits.", score_words(check), check.rows,
                  report.data, report.weights, report.bits_per_weight()),
      "Weights SHA-256 " + sha256, export_signature()};
}

}  // namespace

ExportSettings parse_export_settings(const std::string& trits, const std::string& onnx_ops,
                                     bool raw_inputs, const std::string& type) {
  return {kTritPackings.parse(trits), kOnnxOperators.parse(onnx_ops), raw_inputs,
          kGgufTypes.parse(type)};
}

void check_replaceable_export(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  check(std::filesystem::is_regular_file(path, error), "--to: '", path,
        "' is there and is no file that could be replaced; name another one");
  const std::string text = read_file(path);
  check(text.empty() || is_export(text), "--to: '", path,
        "' is there and was not written by an export; delete it, or name another file");
}

namespace {

void add_check(nlohmann::ordered_json& json, const ExportReport& r) {
  const std::string score(key_name(r.check.metric));
  json.update({{"rows", r.check.rows},
               {score + "_before", r.check.score_before},
               {score + "_after", r.check.score_after},
               {"bit_equal", r.is_exact},
               {"differing_rows", r.check.differing_rows},
               {"differing_classes", r.check.differing_classes},
               {"largest_difference", r.check.largest_difference}});
}

void add_check(nlohmann::ordered_json& json, const LanguageCheck& check, double scale_change) {
  json.update({{"tokens", check.positions},
               {"nats_per_token_before", check.loss_before()},
               {"nats_per_token_after", check.loss_after()},
               {"mean_kl", check.mean_kl()},
               {"differing_tokens", check.differing_tokens},
               {"largest_difference", check.largest_difference},
               {"largest_scale_change", scale_change}});
}

}  // namespace

std::string to_json(const ExportReport& r) {
  const ExportTarget& target = *r.request.target;
  const ExportSettings& settings = r.request.settings;
  nlohmann::ordered_json json{{"checkpoint", r.checkpoint},
                              {"to", r.request.to},
                              {"model", r.model},
                              {"recipe", r.recipe},
                              {"data", r.data},
                              {"steps", r.steps},
                              {"finished", r.finished},
                              {"file_bytes", r.file_bytes},
                              {"table_bytes", r.bytes.tables()},
                              {"weight_bytes", r.bytes.weights},
                              {"scale_bytes", r.bytes.scales},
                              {"workspace_bytes", r.bytes.workspace},
                              {"weights", r.weights},
                              {"bits_per_weight", r.bits_per_weight()}};
  r.language_check ? add_check(json, *r.language_check, r.scale_change) : add_check(json, r);
  if (reads_option(target, "--trits")) json["trits"] = kTritPackings.name(settings.trits);
  if (reads_option(target, "--onnx-ops"))
    json["onnx_ops"] = kOnnxOperators.name(settings.standard_onnx_ops);
  if (reads_option(target, "--raw-inputs")) json["raw_inputs"] = settings.raw_inputs;
  if (reads_option(target, "--type")) json["type"] = kGgufTypes.name(settings.gguf_type);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

FinishedExport export_model(const SavedRun& run, Dataset& dataset, const std::string& trained_on,
                            const ExportRequest& request, bool has_labels) {
  const ExportTarget& target = *request.target;
  check_takes(target, run.is_language_model(), "--to");
  if (run.is_language_model()) return export_language_model(run, dataset, trained_on, request);
  ExportHead head{std::filesystem::path(request.to).stem().string(), {}};
  const LoadedModel loaded = load_model(run, dataset);
  const SavedModel& plan = loaded.plan;
  InferenceNetwork network = describe_network(run, loaded);
  if (target.network.shows_images) network.extent = measure_images(dataset);
  target.network.check(network, head);
  SelfCheck result = check_network(network, loaded, dataset, scored_rows(run, dataset).rows);
  require_passed(result, request.to, dataset.name);
  if (!has_labels) result.score_before = result.score_after = std::nan("");  // null in JSON
  FinishedExport made{
      {run.path(), plan.model, plan.recipe.name, dataset.name, request, network.is_exact(),
       target.network.is_exact(network), run.is_finished(), has_dropout(plan.model), run.step(),
       network.weights(), 0, target.network.bytes(network, request.settings), result},
      {}};
  head.provenance =
      provenance_of(made.report, trained_on, weights_sha256(loaded.model->parameters()));
  made.bytes = target.network.write(network, head, request.settings);
  made.report.file_bytes = std::ssize(made.bytes);
  return made;
}

}  // namespace tritgrad
