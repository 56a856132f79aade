// tritgrad export writes a saved model in a form that other programs read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/files/checkpoint.h"
#include "engine/files/read_file.h"
#include "engine/text.h"
#include "models/export/export_target.h"
#include "models/export/self_check.h"
#include "tools/cli/checkpoint_data.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/terminal.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

struct ExportOptions : CommonOptions {
  std::string checkpoint;
  std::string to;
  std::string trits = "base3";
  std::string onnx_ops = "microsoft";
  bool raw_inputs = false;
};

// The operators of a graph: whether standard ones alone.
constexpr Names<bool, 2> kOnnxOperators{"set of operators",
                                        {{{false, "microsoft"}, {true, "standard"}}}};

// Throws Error for an option that the target does not read.
void check_target_options(const CLI::App& command, const ExportTarget& target) {
  for (const char* option : {"--trits", "--onnx-ops", "--raw-inputs"}) {
    if (command.count(option) > 0) check_option_of(target, option);
  }
}

// What there is to say of an export.
struct ExportReport {
  std::string checkpoint, to, model, recipe, data;
  const ExportTarget* target;
  std::string trits, onnx_ops;
  bool raw_inputs;
  // Whether the description has the model's logits bit by bit, and what reads the file too.
  bool described_exactly, is_exact;
  bool finished, has_dropout;
  std::int64_t steps, weights, file_bytes;
  ExportBytes bytes;
  SelfCheck check;

  double bits_per_weight() const {
    return 8.0 * static_cast<double>(bytes.weights) / static_cast<double>(weights);
  }
};

// Throws Error for what no export wrote, such as a header of somebody's own: it is not replaced.
void check_replaceable_export(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  check(std::filesystem::is_regular_file(path, error), "--to: '", path,
        "' is there and is no file that could be replaced; name another one");
  const std::string text = read_file(path);
  check(text.empty() || is_export(text), "--to: '", path,
        "' is there and was not written by an export; delete it, or name another file");
}

// Throws what would be thrown once the work is done. The files are not kept meanwhile, so that a
// run that is killed leaves nothing of them behind.
void check_outputs(const ExportOptions& options) {
  const OutputFile file("--to", options.to, nullptr);
  const OutputFile json("--json", options.json, kJsonBegins);
}

// Whether the run has come to the end of its epochs.
bool is_finished(const SavedRun& run) {
  const auto json = nlohmann::json::parse(run.text());
  const auto& curve = json.at("curve");
  return !curve.empty() && curve.back().at(0).get<double>() >= run.spec().epochs;
}

// `trained_on` names the data of the run, `report.data` those of the self-check.
std::vector<std::string> provenance_of(const ExportReport& report, const std::string& trained_on,
                                       const std::string& sha256) {
  return {
      fmt::format("{} with recipe {}, trained on {} for {} steps{}.", report.model, report.recipe,
                  trained_on, report.steps, report.finished ? "" : " (not finished)"),
      fmt::format("Accuracy {:.2f} % on {} rows of {}; {} weights of {:.2f} bits.",
                  100.0 * report.check.accuracy_after, report.check.rows, report.data,
                  report.weights, report.bits_per_weight()),
      "Weights SHA-256 " + sha256, export_signature()};
}

void print_report(const ExportReport& r) {
  const auto size = [](std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  print_lines(stdout, "{}: {} with {} as {}\n", r.to, r.model, r.recipe, r.target->description);
  if (!r.finished) {
    print_lines(stdout, "  note           the run is not finished: step {}\n", r.steps);
  }
  if (r.has_dropout) {
    print_lines(stdout, "  note           dropout is of training alone and left out\n");
  }
  print_lines(stdout, "  file           {} bytes\n", r.file_bytes);
  print_lines(stdout, "  tables         {} bytes: weights {}, scales {}, norms and inputs {}\n",
              r.bytes.tables(), r.bytes.weights, r.bytes.scales, r.bytes.others);
  print_lines(stdout, "  bits a weight  {:.3f} ({} weights)\n", r.bits_per_weight(), r.weights);
  if (r.bytes.workspace > 0) print_lines(stdout, "  workspace      {}\n", size(r.bytes.workspace));
  print_lines(stdout, "  accuracy       {:.2f} % before, {:.2f} % after ({} rows of {})\n",
              100.0 * r.check.accuracy_before, 100.0 * r.check.accuracy_after, r.check.rows,
              r.data);
  if (r.described_exactly) {
    print_lines(
        stdout,
        "  differing rows {} bit by bit, by the description that the file is written from\n",
        r.check.differing_rows);
  } else {
    print_lines(
        stdout,
        "  differing rows {} in class, by the description that the file is written from; sums in "
        "floats have no order that all machines share: logits differ by {:.2g} at most\n",
        r.check.differing_classes, r.check.largest_difference);
  }
  if (r.described_exactly && !r.is_exact) {
    print_lines(stdout, "  note           what reads {} computes these logits within rounding\n",
                r.target->ending);
  }
}

std::string to_json(const ExportReport& r) {
  nlohmann::ordered_json json{{"checkpoint", r.checkpoint},
                              {"to", r.to},
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
                              {"bits_per_weight", r.bits_per_weight()},
                              {"rows", r.check.rows},
                              {"accuracy_before", r.check.accuracy_before},
                              {"accuracy_after", r.check.accuracy_after},
                              {"bit_equal", r.is_exact},
                              {"differing_rows", r.check.differing_rows},
                              {"differing_classes", r.check.differing_classes},
                              {"largest_difference", r.check.largest_difference}};
  if (reads_option(*r.target, "--trits")) json["trits"] = r.trits;
  if (reads_option(*r.target, "--onnx-ops")) json["onnx_ops"] = r.onnx_ops;
  if (reads_option(*r.target, "--raw-inputs")) json["raw_inputs"] = r.raw_inputs;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void run_export(const CLI::App& command, ExportOptions& options) {
  const ExportTarget& target = export_target_of(options.to);
  check_target_options(command, target);
  const ExportSettings settings{kTritPackings.parse(options.trits),
                                kOnnxOperators.parse(options.onnx_ops), options.raw_inputs};
  ExportHead head{std::filesystem::path(options.to).stem().string(), {}};
  apply(options);
  const SavedRun run(options.checkpoint);
  const TableSchema schema = adopt_scored_data(command, run, options);
  std::vector<InputFile> inputs = input_files(options);
  inputs.push_back({"the checkpoint", options.checkpoint});
  check_no_input("--to", options.to, inputs);
  check_no_input("--json", options.json, inputs);
  check_replaceable_export(options.to);
  check_outputs(options);
  Dataset dataset = open_scored_data(command, run, options, schema);
  const LoadedModel loaded = load_model(run, dataset);
  const SavedModel& plan = loaded.plan;
  InferenceNetwork network = describe_network(run, loaded);
  if (target.shows_images) network.extent = measure_images(dataset);
  target.check(network, head);
  const SelfCheck result = check_network(network, loaded, dataset, scored_rows(run, dataset).rows);
  require_passed(result, options.to, dataset.name);
  ExportReport report{options.checkpoint,
                      options.to,
                      plan.model,
                      plan.recipe.name,
                      dataset.name,
                      &target,
                      options.trits,
                      options.onnx_ops,
                      options.raw_inputs,
                      network.is_exact(),
                      target.is_exact(network),
                      is_finished(run),
                      plan.model.starts_with("mlp:") && parse_mlp(plan.model).dropout > 0.0f,
                      run.step(),
                      network.weights(),
                      0,
                      target.bytes(network, settings),
                      result};
  const std::string trained_on = command.count("--data") > 0
                                     ? std::filesystem::path(run.spec().data).stem().string()
                                     : dataset.name;
  head.provenance = provenance_of(report, trained_on, weights_sha256(loaded.model->parameters()));
  const std::string bytes = target.write(network, head, settings);
  OutputFile file("--to", options.to, nullptr);
  OutputFile json("--json", options.json, kJsonBegins);
  report.file_bytes = std::ssize(bytes);
  file.write_bytes(bytes);
  if (options.json != "-") print_report(report);
  json.write(to_json(report));
}

// "FILE.h: C99; ..."
std::string endings_text() {
  std::string text;
  for (const ExportTarget& target : export_targets()) {
    text +=
        fmt::format("{}FILE{}: {}", text.empty() ? "" : "; ", target.ending, target.description);
  }
  return text;
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "write a saved model for other programs, and check it");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "file written by train --save")
      ->required();
  command->add_option("--to", options->to, endings_text())->required();
  command
      ->add_option("--trits", options->trits,
                   "base3: five to a byte; 2bit: four, larger and faster; int8: one, fastest")
      ->capture_default_str();
  command
      ->add_option("--onnx-ops", options->onnx_ops,
                   "microsoft: trits in 2 bits, for onnxruntime; standard: int8, for all runtimes")
      ->capture_default_str();
  command->add_flag("--raw-inputs", options->raw_inputs,
                    "leave standardisation out of the graph: its inputs are standardised already");
  add_data_options(*command, *options);
  command->add_option("--json", options->json,
                      "write the report as JSON to FILE, - = standard output");
  command->footer(
      "Example:\n  tritgrad export digits.safetensors --to digits.h\n"
      "Every export is compared with the model on the rows that 'tritgrad eval' would score; "
      "where\n"
      "they differ no file is written. In C, the name of the file begins the names in it.");
  command->callback([command, options] { run_export(*command, *options); });
}

}  // namespace tritgrad
