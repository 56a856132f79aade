// tritgrad inspect shows where every byte goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "engine/text.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/output_file.h"
#include "tools/cli/terminal.h"
#include "tools/inspect/inspection.h"
#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

struct InspectOptions : CommonOptions {
  std::string checkpoint;
  std::string model;
  std::string recipe = "votes";
  std::vector<std::string> overrides;
  bool live = false;
  std::string ending;  // of --export
  std::string trits = "base3";
  std::string method;  // of --dp; "all": every one, in a table
  std::vector<int> ranks = {2};
  int parts = 0;  // 0: one for each rank
  std::vector<double> links = {1, 10, 100};
};

std::string size_text(std::int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::vector<Column> columns_of(const Inspection& inspection) {
  std::vector<Column> columns{{"tensor"}, {"shape"}, {"format"}, {"rule"}};
  for (const auto& [name, bytes] : named_bytes({})) {
    columns.push_back({name, Align::kRight, "forecast"});
  }
  if (inspection.live) columns.push_back({"live", Align::kRight});
  columns.push_back({"B/weight", Align::kRight});
  return columns;
}

// Appends a cell for each category and the total; "-" is nothing.
template <typename Text>
std::vector<std::string> with_bytes(std::vector<std::string> cells, const Footprint& footprint,
                                    const Text& text) {
  for (const auto& [name, bytes] : named_bytes(footprint)) {
    cells.push_back(bytes == 0 ? "-" : text(bytes));
  }
  return cells;
}

std::string table_of(const Inspection& inspection) {
  const ModelFootprint& forecast = inspection.forecast;
  Table table(columns_of(inspection));
  for (std::size_t i = 0; i < forecast.tensors.size(); ++i) {
    const TensorFootprint& t = forecast.tensors[i];
    const auto total = static_cast<double>(t.bytes.total());
    std::vector<std::string> cells =
        with_bytes({t.spec.name, t.spec.shape.str(), std::string(format_name(t.spec.format.kind)),
                    t.rule.empty() ? "-" : t.rule},
                   t.bytes, size_text);
    if (inspection.live) cells.push_back(size_text(inspection.live->tensors[i].bytes.total()));
    cells.push_back(fmt::format("{:.3f}", total / static_cast<double>(t.spec.shape.size())));
    table.add_row(cells);
  }
  table.add_section("");
  const auto summary = [&](const char* name, const Footprint& footprint, const auto& text) {
    std::vector<std::string> cells = with_bytes({name, "", "", ""}, footprint, text);
    cells.resize(table.columns());
    table.add_row(cells);
  };
  summary("forecast", forecast.total, size_text);
  if (inspection.live) summary("live (ledger)", inspection.live->total, size_text);
  summary("bytes per parameter", forecast.total,
          [&](std::int64_t bytes) { return fmt::format("{:.4f}", forecast.per_parameter(bytes)); });
  return table.render();
}

// Says what the model knows of the columns that it was trained on.
std::string explain_columns(const TableSchema& schema) {
  Table table({{"column"},
               {"holds"},
               {"features", Align::kRight},
               {"offset", Align::kRight},
               {"missing", Align::kRight},
               {"filled by"}});
  for (const TableFeature& column : schema.columns) {
    const bool words = !column.words.empty();
    std::string fill = column.has_indicator ? "mean" : printable(column.fill_word);
    if (column.fill_number) fill = number_text(*column.fill_number);
    table.add_row(
        {printable(column.name), words ? fmt::format("{} words", column.words.size()) : "numbers",
         std::to_string(column.width()), column.offset == 0.0 ? "-" : number_text(column.offset),
         column.missing == 0 ? "-" : std::to_string(column.missing), fill.empty() ? "-" : fill});
  }
  return fmt::format("\n{}\n{}\n", schema.summary(), table.render());
}

// Says what becomes of gradients, and how many bytes of them exist for a moment.
std::string explain_gradients(const Inspection& inspection) {
  const ModelFootprint& f = inspection.forecast;
  const auto at_most = [&](const char* of) {
    return fmt::format("at most {} {}exist at one time ({:.4f} B/param, not in the table).\n",
                       size_text(f.transient_gradient), of, f.per_parameter(f.transient_gradient));
  };
  if (inspection.joint && inspection.joint->spec.method == ParallelMethod::kVotes) {
    return "gradients: matrices keep 1 byte a weight for votes, or 4 where gradients travel as "
           "int8; " +
           at_most("more ");
  }
  if (f.gradients == GradientPolicy::kReleased) {
    return "gradients: released, each is used as soon as it is complete; " + at_most("");
  }
  std::string text = fmt::format(
      "gradients: kept, {:.1f} B/param beside the state; without them {:.4f} B/param.\n",
      f.per_parameter(f.total.gradients), f.per_parameter(f.total.total() - f.total.gradients));
  if (f.transient_gradient > 0) {
    text += fmt::format("they are made in fp32 before they are kept in {}; {}",
                        format_name(f.gradient_format), at_most("of that "));
  }
  return text;
}

// Says what a rank sends for a step.
std::string explain_traffic(const JointForecast& joint, const ModelFootprint& f) {
  const TrafficForecast& traffic = joint.traffic;
  std::string text = fmt::format(
      "--dp {} on {} ranks: each sends {} a step ({:.4f} B/param): gradients {}, statistics {}, "
      "sums {}; error feedback takes {} beside the state.\n",
      method_name(joint.spec.method), joint.ranks, size_text(traffic.total()),
      f.per_parameter(traffic.total()), size_text(traffic.gradients), size_text(traffic.statistics),
      size_text(traffic.sums), size_text(traffic.state));
  if (traffic.warmup > 0) {
    text += fmt::format(
        "during the warm-up gradients take {}; where it is {:g} of the steps, {} a step are sent "
        "in the mean.\n",
        size_text(traffic.warmup), *joint.spec.warmup, size_text(joint.mean().total()));
  }
  return text;
}

std::string to_text(const Inspection& inspection) {
  const ModelFootprint& f = inspection.forecast;
  std::string text = fmt::format(
      "{} with recipe {}\n\n{}\n{} parameters (scales are part of how a weight is stored and are "
      "not counted).\n{}",
      inspection.model, inspection.recipe.name, table_of(inspection),
      human_count(static_cast<double>(f.parameters)), explain_gradients(inspection));
  if (inspection.live) {
    const std::int64_t missing = f.total.total() - inspection.live->total.total();
    text += f.total == inspection.live->total
                ? "forecast equals live bytes.\n"
                : fmt::format("forecast and live bytes differ by {} bytes.\n", missing);
  }
  if (inspection.joint) text += explain_traffic(*inspection.joint, f);
  if (inspection.exported) text += to_text(*inspection.exported);
  if (inspection.table) text += explain_columns(*inspection.table);
  return text;
}

// Returns the footprint with gradients as exchanges between ranks keep them.
ModelFootprint joint_footprint(const std::vector<ParameterSpec>& plan, Recipe recipe,
                               const ParallelSpec& spec) {
  const bool votes = spec.method == ParallelMethod::kVotes;
  if (!votes) recipe.gradients = GradientPolicy::kKept;
  ModelFootprint f = forecast_footprint(plan, recipe);
  if (!votes) return f;
  f.gradients = GradientPolicy::kKept;
  for (TensorFootprint& tensor : f.tensors) {
    if (!tensor.spec.trainable()) continue;
    const GroupSpec& update = recipe.group(tensor.spec.name, tensor.spec.role).update;
    tensor.bytes.gradients = kept_bytes(exchange_of(spec, tensor.spec, update),
                                        tensor.spec.shape.size(), recipe.gradient_format);
    f.total.gradients += tensor.bytes.gradients;
  }
  return f;
}

// Counts the bytes that a model and its optimizer add to the ledger while they exist.
ModelFootprint count_by_ledger(const SavedModel& plan) {
  const Footprint before = ledger_footprint();
  Footprint held;
  ModelFootprint live = allocate_and_count(plan, [&] { held = ledger_footprint(before); });
  live.total = held;
  return live;
}

Inspection inspect_checkpoint(const std::string& path) {
  const SavedRun run(path);
  Inspection result = inspect_saved(run);
  result.live = count_by_ledger(run.model());
  return result;
}

// What is asked of a model that is not there yet. Without data, the model names its own input.
struct Question {
  const InspectOptions& options;
  std::optional<Dataset> data;

  ModelInput input() const { return data ? ModelInput(*data) : ModelInput(0); }
  std::int64_t outputs() const { return data ? data->outputs() : 0; }
};

Inspection inspect_model(const Question& question) {
  const InspectOptions& options = question.options;
  const Recipe recipe = load_recipe(options.recipe, options.overrides);
  const SavedModel plan{options.model, question.input(), question.outputs(), recipe};
  Inspection result{
      options.model, recipe,
      forecast_footprint(plan_model(plan.model, plan.input, plan.outputs, recipe), recipe)};
  if (options.live) {
    result.live = count_by_ledger(plan);
  }
  if (!options.ending.empty()) {
    result.exported =
        forecast_export(options.ending, options.trits, plan, *question.data, options.train);
  }
  return result;
}

Inspection inspect_joint(const Question& question) {
  const InspectOptions& options = question.options;
  check(options.ranks.size() == 1, "--ranks: several numbers need --dp all");
  JointForecast joint{{.method = parse_method(options.method)}, options.ranks.front(), {}};
  const Recipe recipe = joint_recipe(joint.spec, load_recipe(options.recipe, options.overrides));
  const auto plan = plan_model(options.model, question.input(), question.outputs(), recipe);
  joint.traffic = forecast_traffic(plan, recipe.updates(), joint.spec, joint.ranks, joint.ranks,
                                   recipe.gradient_format);
  return {options.model, recipe, joint_footprint(plan, recipe, joint.spec), {}, joint};
}

// Throws Error for options that contradict each other.
void check_inspect_options(const CLI::App& command, const InspectOptions& options) {
  const bool recipe_named = command.count("--recipe") > 0 || !options.overrides.empty();
  const bool ranks_given = command.count("--ranks") > 0;
  check(options.checkpoint.empty() != options.model.empty(),
        "inspect: give either a CHECKPOINT or --model (with --recipe); see 'tritgrad inspect "
        "--help'");
  check(options.checkpoint.empty() || !recipe_named, "inspect: the checkpoint '",
        options.checkpoint,
        "' holds its recipe; leave out --recipe and --set, or give --model instead");
  const bool joint = !options.method.empty();
  check(joint || !ranks_given, "--ranks are those of --dp; name a method or leave the option out");
  check(options.method != "all" || !recipe_named,
        "--dp all: each way of training has a recipe of its own; leave out --recipe and --set");
  check(!joint || (options.checkpoint.empty() && !options.live),
        "--dp forecasts what --model would need; leave out ",
        options.live ? "--live" : "the CHECKPOINT");
}

// Throws Error for --data and --export where they mean nothing.
void check_export_options(const CLI::App& command, const InspectOptions& options) {
  const bool has_data = command.count("--data") > 0, exports = !options.ending.empty();
  check(
      options.checkpoint.empty() || !exports,
      "--export forecasts what --model would become; a checkpoint is written by: tritgrad export ",
      shell_quoted(options.checkpoint), " --to FILE.h");
  check(options.checkpoint.empty() || !has_data, "inspect: the checkpoint '", options.checkpoint,
        "' knows its data; leave out --data, or give --model instead");
  check(has_data || !exports,
        "--export: what becomes of inputs depends on the data; name them by --data");
  check(has_data || command.count("--resize") == 0, "--resize is for images of --data; ",
        options.checkpoint.empty() ? "name them, or give --model the size itself"
                                   : "a checkpoint knows its size: leave the option out");
  check(options.method.empty() || !exports,
        "--export and --dp are two questions; ask one after the other");
  check(options.method != "all" || !has_data,
        "--dp all asks for a complete --model; leave out --data");
  check(exports || command.count("--trits") == 0,
        "--trits is the packing of --export; name an ending, or leave the option out");
}

void run_inspect(const CLI::App& command, InspectOptions options) {
  if (options.method == "none") options.method.clear();
  check_inspect_options(command, options);
  check_export_options(command, options);
  if (!options.ending.empty()) {
    const ExportTarget& target = export_target_with(options.ending, "--export");
    if (command.count("--trits") > 0) check_option_of(target, "--trits");
  }
  apply(options);
  std::vector<InputFile> inputs = input_files(options);
  inputs.push_back(recipe_file("--recipe", options.recipe));
  inputs.push_back({"the checkpoint", options.checkpoint});
  check_no_input("--json", options.json, inputs);
  OutputFile json("--json", options.json, kJsonBegins);
  std::string text, json_text;
  if (options.method == "all") {
    const TrafficQuestion question{options.model, options.ranks, options.parts, options.links};
    text = traffic_table(question);
    json_text = traffic_json(question);
  } else {
    Question question{options, std::nullopt};
    if (command.count("--data") > 0) {
      options.train.model = options.model;  // by which a text is cut into windows
      question.data = open_data(options);
      say_remarks(question.data->remarks, false);
    }
    const Inspection result = !options.method.empty()       ? inspect_joint(question)
                              : !options.checkpoint.empty() ? inspect_checkpoint(options.checkpoint)
                                                            : inspect_model(question);
    text = to_text(result);
    json_text = to_json(result);
  }
  if (options.json != "-") print_lines(stdout, "{}", text);
  json.write(json_text);
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "where every byte goes, by tensor and category");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "file written by train --save");
  command->add_option("--model", options->model,
                      "complete, such as mlp:784-512-512-10 or conv:32x32x3-32-M-64-10, or with "
                      "--data as train takes it");
  command->add_option("--recipe", options->recipe, "name or FILE.toml")->capture_default_str();
  command->add_option("--set", options->overrides, "KEY=VALUE: override the recipe");
  command->add_flag("--live", options->live,
                    "with --model: also allocate the model and count its bytes");
  command->add_option(
      "--dp", options->method,
      "with --model: also what a data-parallel step sends by this method; all: every method, in a "
      "table");
  command->add_option("--ranks", options->ranks, "of --dp; with --dp all also several, 2,8,64")
      ->delimiter(',')
      ->capture_default_str()
      ->check(in_range(1, 1 << 20));
  command
      ->add_option("--micro-batches", options->parts,
                   "of --dp all: parts of a batch, a multiple of the ranks [one for each]")
      ->check(in_range(1, 1 << 20));
  command->add_option("--link", options->links, "of --dp all: speeds of links in Gbit/s")
      ->delimiter(',')
      ->capture_default_str()
      ->check(in_range(1e-3, 1e6));
  command->add_option(
      "--export", options->ending,
      "with --model and --data: also the bytes of its export, by ending, such as h");
  command->add_option("--trits", options->trits, "of --export: base3, 2bit or int8")
      ->capture_default_str();
  add_data_options(*command, *options);
  command->add_option("--json", options->json, "write as JSON to FILE, - = standard output");
  command->footer(
      "Examples:\n"
      "  tritgrad inspect --model mlp:784-512-512-10 --recipe votes --live\n"
      "  tritgrad inspect --model mlp:8192-65536-65536-32768 --recipe latent8\n"
      "  tritgrad inspect --model mlp:784-512-512-10 --dp all --ranks 2,8,64 --link 1,10\n"
      "  tritgrad inspect --model mlp:64,64 --data mnist --recipe latent8 --export h\n"
      "  tritgrad inspect m.safetensors");
  command->callback([command, options] { run_inspect(*command, *options); });
}

// Keeps the command of earlier versions, which says what took its place.
void add_traffic_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("traffic", "is part of inspect now")->group("");
  command->allow_extras();
  command->callback([] {
    fail(
        "'traffic' is part of 'inspect' now; try: tritgrad inspect --model mlp:784-512-512-10 "
        "--dp all --ranks 4");
  });
}

}  // namespace tritgrad
