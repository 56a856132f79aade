// tritgrad export writes a saved model in a form that other programs read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "models/export/export_target.h"
#include "tools/cli/checkpoint_data.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/terminal.h"
#include "tools/export/model_export.h"
#include "tools/report/number_text.h"
#include "tools/report/score_unit.h"

namespace tritgrad {
namespace {

struct ExportOptions : CommonOptions {
  std::string checkpoint;
  std::string to;
  std::string trits = "base3";
  std::string onnx_ops = "microsoft";
  bool raw_inputs = false;
  std::string type = "tq2_0";
};

// Throws Error for an option that the target does not read.
void check_target_options(const CLI::App& command, const ExportTarget& target) {
  for (const char* option : {"--trits", "--onnx-ops", "--raw-inputs", "--type"}) {
    if (command.count(option) > 0) check_option_of(target, option);
  }
}

// Throws what would be thrown once the work is done. The files are not kept meanwhile, so that a
// run that is killed leaves nothing of them behind.
void check_export_outputs(const ExportOptions& options) {
  const OutputFile file("--to", options.to, nullptr);
  const OutputFile json("--json", options.json, kJsonBegins);
}

void print_check(const ExportReport& r) {
  const ScoreUnit unit = score_unit(r.check.metric, r.check.score_before);
  print_lines(stdout, "  {:<14} {} before, {} after ({} rows of {})\n", to_text(r.check.metric),
              unit.full_text(r.check.score_before), unit.full_text(r.check.score_after),
              r.check.rows, r.data);
  const char* numbers = r.check.metric == Metric::kAccuracy ? "logits" : "values";
  if (r.described_exactly) {
    print_lines(
        stdout,
        "  differing rows {} bit by bit, by the description that the file is written from\n",
        r.check.differing_rows);
  } else {
    print_lines(
        stdout,
        "  differing rows {} in class, by the description that the file is written from; sums in "
        "floats have no order that all machines share: {} differ by {:.2g} at most\n",
        r.check.differing_classes, numbers, r.check.largest_difference);
  }
  if (r.described_exactly && !r.is_exact) {
    print_lines(stdout, "  note           what reads {} computes these {} within rounding\n",
                r.request.target->ending, numbers);
  }
}

void print_language_check(const ExportReport& r, const LanguageCheck& check) {
  const GgufType type = r.request.settings.gguf_type;
  if (type == GgufType::kQ2)
    print_lines(stdout,
                "  note           llama.cpp is slow with q2_0 on CPUs of today; tq2_0 is faster\n");
  if (r.scale_change > 0.0)
    print_lines(stdout, "  note           scales are rounded to fp16, by {:.2g} of them at most\n",
                r.scale_change);
  print_lines(stdout,
              "  loss           {:.4f} nats a token before, {:.4f} after ({} tokens of {})\n",
              check.loss_before(), check.loss_after(), check.positions, r.data);
  print_lines(
      stdout,
      "  divergence     {:.2g} nats on average, by the description that the file is written "
      "from; {} tokens have another most probable next one\n",
      check.mean_kl(), check.differing_tokens);
}

void print_report(const ExportReport& r) {
  const auto size = [](std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  print_lines(stdout, "{}: {} with {} as {}\n", printable(r.request.to), r.model, r.recipe,
              r.request.target->description);
  if (!r.finished)
    print_lines(stdout, "  note           the run is not finished: step {}\n", r.steps);
  if (r.has_dropout)
    print_lines(stdout, "  note           dropout is of training alone and left out\n");
  print_lines(stdout, "  file           {} bytes\n", r.file_bytes);
  print_lines(stdout, "  tables         {} bytes: weights {}, scales {}, {} {}\n", r.bytes.tables(),
              r.bytes.weights, r.bytes.scales,
              r.language_check ? "norms, embedding and head" : "norms and inputs", r.bytes.others);
  print_lines(stdout, "  bits a weight  {:.3f} ({} weights)\n", r.bits_per_weight(), r.weights);
  if (r.bytes.workspace > 0) print_lines(stdout, "  workspace      {}\n", size(r.bytes.workspace));
  r.language_check ? print_language_check(r, *r.language_check) : print_check(r);
}

void run_export(const CLI::App& command, ExportOptions& options) {
  const ExportTarget& target = export_target_of(options.to);
  check_target_options(command, target);
  const ExportRequest request{
      options.to, &target,
      parse_export_settings(options.trits, options.onnx_ops, options.raw_inputs, options.type)};
  apply(options);
  const SavedRun run(options.checkpoint);
  check_takes(target, run.is_language_model(), "--to");
  const TableSchema schema = adopt_scored_data(given_on(command), run, options);
  std::vector<InputFile> inputs = input_files(options);
  inputs.push_back({"the checkpoint", options.checkpoint});
  check_no_input("--to", options.to, inputs);
  check_no_input("--json", options.json, inputs);
  check_replaceable_export(options.to);
  check_export_outputs(options);
  Dataset dataset = open_scored_data(given_on(command), run, options, schema);
  say_remarks(dataset.remarks, false);
  const std::string trained_on = command.count("--data") > 0
                                     ? std::filesystem::path(run.spec().data).stem().string()
                                     : dataset.name;
  const FinishedExport finished = export_model(run, dataset, trained_on, request, true);
  OutputFile file("--to", options.to, nullptr);
  OutputFile json("--json", options.json, kJsonBegins);
  file.write_bytes(finished.bytes);
  if (options.json != "-") print_report(finished.report);
  json.write(to_json(finished.report));
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
  command
      ->add_option(
          "--type", options->type,
          "of GGUF: tq2_0 or tq1_0 (smaller) where 256 divides width and ff, q2_0 where 64 "
          "does; or floats, f16 or f32")
      ->capture_default_str();
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
