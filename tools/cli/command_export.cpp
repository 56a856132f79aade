// tritgrad export writes a saved model in a form that other programs read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/files/checkpoint.h"
#include "engine/files/read_file.h"
#include "engine/text.h"
#include "models/export/c_header.h"
#include "models/export/self_check.h"
#include "tools/cli/checkpoint_data.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

struct ExportOptions : CommonOptions {
  std::string checkpoint;
  std::string to;
  std::string trits = "base3";
};

// What there is to say of an export.
struct ExportReport {
  std::string checkpoint, to, name, model, recipe, data, trits;
  bool finished, has_dropout, exact;
  std::int64_t steps, weights;
  CHeaderBytes bytes;
  SelfCheck check;

  double bits_per_weight() const {
    return 8.0 * static_cast<double>(bytes.weights) / static_cast<double>(weights);
  }
};

// Throws Error for a file that no export wrote: a header of somebody's own is not replaced.
void check_replaceable_header(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  const std::string text = read_file(path);
  check(text.empty() || text.find("Written by tritgrad") != text.npos, "--to: '", path,
        "' is there and was not written by an export; delete it, or name another file");
}

// Throws Error for a file that no target has the ending of.
void check_ending(const std::string& to) {
  const std::vector<std::string> endings{".h"};
  const std::string ending = std::filesystem::path(to).extension().string();
  check(std::find(endings.begin(), endings.end(), ending) != endings.end(), "--to: '", to,
        "' ends in '", ending, "', which names no kind of export; .h is a header in C99",
        did_you_mean(ending, endings));
}

// Whether the run has come to the end of its epochs.
bool is_finished(const SavedRun& run) {
  const auto json = nlohmann::json::parse(run.text());
  const auto& curve = json.at("curve");
  return !curve.empty() && curve.back().at(0).get<double>() >= run.spec().epochs;
}

std::vector<std::string> provenance_of(const ExportReport& report, const std::string& sha256) {
  return {fmt::format("{}: {} with recipe {}, trained on {} for {} steps{}.", report.name,
                      report.model, report.recipe, report.data, report.steps,
                      report.finished ? "" : " (not finished)"),
          fmt::format("Accuracy {:.2f} % on {} rows; {} weights of {:.2f} bits.",
                      100.0 * report.check.accuracy_after, report.check.rows, report.weights,
                      report.bits_per_weight()),
          "Weights SHA-256 " + sha256, fmt::format("Written by tritgrad {}.", TRITGRAD_VERSION)};
}

// Throws Error, which says by how much, unless the network computes what the model does.
void check_passed(const SelfCheck& check_result, const std::string& to) {
  check(check_result.passed(), "export: the self-check of '", to, "' failed: logits of ",
        check_result.differing_rows, " of ", check_result.rows,
        " rows are not those of the model (by up to ", check_result.largest_difference,
        "); no file is written");
}

void print_report(const ExportReport& r) {
  const auto size = [](std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  fmt::print("{}: {} with {} as C99, names begin with {}_\n", r.to, r.model, r.recipe, r.name);
  if (!r.finished) fmt::print("  note           the run is not finished: step {}\n", r.steps);
  if (r.has_dropout) fmt::print("  note           dropout is of training alone and left out\n");
  fmt::print("  tables         {} bytes: weights {}, scales {}, norms and inputs {}\n",
             r.bytes.tables(), r.bytes.weights, r.bytes.scales, r.bytes.others);
  fmt::print("  bits a weight  {:.3f} ({} weights)\n", r.bits_per_weight(), r.weights);
  fmt::print("  workspace      {}\n", size(r.bytes.workspace));
  fmt::print("  accuracy       {:.2f} % before, {:.2f} % after ({} rows of {})\n",
             100.0 * r.check.accuracy_before, 100.0 * r.check.accuracy_after, r.check.rows, r.data);
  if (r.exact) {
    fmt::print("  differing rows {} (logits are compared bit by bit)\n", r.check.differing_rows);
  } else {
    fmt::print(
        "  differing rows {} in class; sums in floats have no order that all machines share: "
        "logits differ by {:.2g} at most\n",
        r.check.differing_classes, r.check.largest_difference);
  }
}

std::string to_json(const ExportReport& r) {
  const nlohmann::ordered_json json{{"checkpoint", r.checkpoint},
                                    {"to", r.to},
                                    {"name", r.name},
                                    {"model", r.model},
                                    {"recipe", r.recipe},
                                    {"data", r.data},
                                    {"steps", r.steps},
                                    {"finished", r.finished},
                                    {"trits", r.trits},
                                    {"table_bytes", r.bytes.tables()},
                                    {"weight_bytes", r.bytes.weights},
                                    {"scale_bytes", r.bytes.scales},
                                    {"workspace_bytes", r.bytes.workspace},
                                    {"weights", r.weights},
                                    {"bits_per_weight", r.bits_per_weight()},
                                    {"rows", r.check.rows},
                                    {"accuracy_before", r.check.accuracy_before},
                                    {"accuracy_after", r.check.accuracy_after},
                                    {"bit_equal", r.exact},
                                    {"differing_rows", r.check.differing_rows},
                                    {"differing_classes", r.check.differing_classes},
                                    {"largest_difference", r.check.largest_difference}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void run_export(const CLI::App& command, ExportOptions& options) {
  check_ending(options.to);
  const TritPacking packing = kTritPackings.parse(options.trits);
  const std::string name = c_identifier(std::filesystem::path(options.to).stem().string());
  apply(options);
  const SavedRun run(options.checkpoint);
  const TableSchema schema = adopt_scored_data(command, run, options);
  std::vector<InputFile> inputs = input_files(options);
  inputs.push_back({"the checkpoint", options.checkpoint});
  check_no_input("--to", options.to, inputs);
  check_no_input("--json", options.json, inputs);
  check_replaceable_header(options.to);
  OutputFile header("--to", options.to, nullptr);
  OutputFile json("--json", options.json, kJsonBegins);
  Dataset dataset = open_scored_data(command, run, options, schema);
  const LoadedModel loaded = load_model(run, dataset);
  const SavedModel& plan = loaded.plan;
  const InferenceNetwork network = describe_network(run, loaded);
  const SelfCheck result = check_network(network, loaded, dataset, scored_rows(run, dataset).rows);
  check_passed(result, options.to);
  const ExportReport report{options.checkpoint,
                            options.to,
                            name,
                            plan.model,
                            plan.recipe.name,
                            dataset.name,
                            options.trits,
                            is_finished(run),
                            plan.model.starts_with("mlp:") && parse_mlp(plan.model).dropout > 0.0f,
                            network.is_exact(),
                            run.step(),
                            network.weights(),
                            c_header_bytes(network, packing),
                            result};
  const std::string sha256 = weights_sha256(loaded.model->parameters());
  header.write(c_header(network, name, provenance_of(report, sha256), packing));
  if (options.json != "-") print_report(report);
  json.write(to_json(report));
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "write a saved model for other programs, and check it");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "file written by train --save")
      ->required();
  command->add_option("--to", options->to, "FILE.h: one header in C99")->required();
  command
      ->add_option("--trits", options->trits,
                   "base3: five to a byte; 2bit: four, larger and faster")
      ->capture_default_str();
  add_data_options(*command, *options);
  command->add_option("--json", options->json,
                      "write the report as JSON to FILE, - = standard output");
  command->footer(
      "Example:\n  tritgrad export digits.safetensors --to digits.h\n"
      "Every export is compared with the model on the rows that 'tritgrad eval' would score; "
      "where\n"
      "they differ no file is written. The name of the file begins the names in it.");
  command->callback([command, options] { run_export(*command, *options); });
}

}  // namespace tritgrad
