// tritgrad inspect: where every byte goes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/text.h"
#include "models/footprint.h"
#include "models/training/parallel_run.h"
#include "models/training/saved_run.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/traffic_forecast.h"
#include "tools/cli/within.h"
#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

struct InspectOptions {
  std::string checkpoint;
  std::string model;
  std::string recipe = "votes";
  std::vector<std::string> overrides;
  bool live = false;
  std::string json;
  std::string method;  // of --dp; "all": every one, in a table
  std::vector<int> ranks = {2};
  int parts = 0;  // 0: one for each rank
  std::vector<double> links = {1, 10, 100};
};

// How several ranks would train the model.
struct JointForecast {
  ParallelSpec spec;
  int ranks;
  TrafficForecast traffic;

  // With the warm-up that training has unless told otherwise.
  TrafficForecast mean() const { return traffic.with_warmup(*spec.warmup); }
};

std::vector<std::string> byte_cells(const Footprint& bytes) {
  std::vector<std::string> cells;
  for (std::int64_t n : {bytes.weights, bytes.scales, bytes.residual, bytes.moments,
                         bytes.gradients, bytes.total()}) {
    cells.push_back(n == 0 ? "-" : human_bytes(static_cast<double>(n)));
  }
  return cells;
}

std::vector<std::string> ratio_cells(const ModelFootprint& f) {
  std::vector<std::string> cells;
  for (std::int64_t n : {f.total.weights, f.total.scales, f.total.residual, f.total.moments,
                         f.total.gradients, f.total.total()}) {
    cells.push_back(n == 0 ? "-" : fmt::format("{:.4f}", f.per_parameter(n)));
  }
  return cells;
}

std::vector<std::string> row(std::vector<std::string> head, const std::vector<std::string>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

std::vector<Column> columns(bool with_live) {
  std::vector<Column> result{{"tensor"}, {"shape"}, {"format"}, {"rule"}};
  for (const char* name : {"weights", "scales", "residual", "moments", "gradients", "total"}) {
    result.push_back({name, Align::kRight, "forecast"});
  }
  if (with_live) result.push_back({"live", Align::kRight});
  result.push_back({"B/weight", Align::kRight});
  return result;
}

std::string render(const ModelFootprint& forecast, const ModelFootprint* live) {
  Table table(columns(live != nullptr));
  for (std::size_t i = 0; i < forecast.tensors.size(); ++i) {
    const TensorFootprint& t = forecast.tensors[i];
    const double per_element =
        static_cast<double>(t.bytes.total()) / static_cast<double>(t.spec.shape.size());
    std::vector<std::string> cells =
        row({t.spec.name, t.spec.shape.str(), std::string(format_name(t.spec.format.kind)),
             t.rule.empty() ? "-" : t.rule},
            byte_cells(t.bytes));
    if (live != nullptr) cells.push_back(byte_cells(live->tensors[i].bytes).back());
    cells.push_back(fmt::format("{:.3f}", per_element));
    table.add_row(cells);
  }
  table.add_section("");
  const auto summary = [&](const char* name, const std::vector<std::string>& values) {
    std::vector<std::string> cells = row({name, "", "", ""}, values);
    cells.resize(table.columns());
    table.add_row(cells);
  };
  summary("forecast", byte_cells(forecast.total));
  if (live != nullptr) summary("live (ledger)", byte_cells(live->total));
  summary("bytes per parameter", ratio_cells(forecast));
  return table.render();
}

// What the model knows of the table that it was trained on.
std::string render_columns(const TableSchema& schema) {
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

bool is_voted(const JointForecast* joint) {
  return joint != nullptr && joint->spec.method == ParallelMethod::kVotes;
}

std::string explain(const ModelFootprint& f, const ModelFootprint* live,
                    const JointForecast* joint) {
  std::string text = fmt::format(
      "\n{} parameters (scales are part of how a weight is stored and are not counted).\n",
      human_count(static_cast<double>(f.parameters)));
  if (is_voted(joint)) {
    text += fmt::format(
        "gradients: matrices keep 1 byte a weight for votes, or 4 where gradients travel as int8; "
        "at most {} more exist at one time ({:.4f} B/param, not in the table).\n",
        human_bytes(static_cast<double>(f.transient_gradient)),
        f.per_parameter(f.transient_gradient));
  } else if (f.gradients == GradientPolicy::kKept) {
    text += fmt::format(
        "gradients: kept, {:.1f} B/param beside the state; without them {:.4f} B/param.\n",
        f.per_parameter(f.total.gradients), f.per_parameter(f.total.total() - f.total.gradients));
    if (f.transient_gradient > 0) {
      text += fmt::format(
          "they are made in fp32 before they are kept in {}; at most {} of that exist at one time "
          "({:.4f} B/param, not in the table).\n",
          format_name(f.gradient_format), human_bytes(static_cast<double>(f.transient_gradient)),
          f.per_parameter(f.transient_gradient));
    }
  } else {
    text += fmt::format(
        "gradients: released, each is used as soon as it is complete; at most {} exist at one "
        "time ({:.4f} B/param, not in the table).\n",
        human_bytes(static_cast<double>(f.transient_gradient)),
        f.per_parameter(f.transient_gradient));
  }
  if (live != nullptr) {
    text += f.total == live->total ? "forecast equals live bytes.\n"
                                   : fmt::format("forecast and live bytes differ by {} bytes.\n",
                                                 f.total.total() - live->total.total());
  }
  return text;
}

nlohmann::ordered_json to_json(const Footprint& b) {
  return {{"weights", b.weights}, {"scales", b.scales},       {"residual", b.residual},
          {"moments", b.moments}, {"gradients", b.gradients}, {"total", b.total()}};
}

nlohmann::ordered_json to_json(const JointForecast& joint) {
  const TrafficForecast mean = joint.mean();
  return {{"method", method_name(joint.spec.method)},
          {"ranks", joint.ranks},
          {"gradient_bytes", joint.traffic.gradients},
          {"warmup_gradient_bytes", joint.traffic.warmup},
          {"warmup_share", joint.traffic.warmup > 0 ? *joint.spec.warmup : 0.0},
          {"statistics_bytes", joint.traffic.statistics},
          {"sums_bytes", joint.traffic.sums},
          {"bytes_per_step", mean.total()},
          {"last_step_bytes", joint.traffic.total()},
          {"error_feedback_bytes", joint.traffic.state}};
}

std::string to_json(const std::string& model, const Recipe& recipe, const ModelFootprint& f,
                    const ModelFootprint* live, const JointForecast* joint,
                    const TableSchema* schema) {
  nlohmann::ordered_json json;
  json["model"] = model;
  json["recipe"] = recipe.name;
  json["parameters"] = f.parameters;
  json["gradient_policy"] = f.gradients == GradientPolicy::kKept ? "kept" : "released";
  json["gradient_format"] = format_name(f.gradient_format);
  json["transient_gradient_bytes"] = f.transient_gradient;
  json["forecast_bytes"] = to_json(f.total);
  if (live != nullptr) json["live_bytes"] = to_json(live->total);
  const nlohmann::ordered_json total = to_json(f.total);
  nlohmann::ordered_json per;
  for (const auto& [key, value] : total.items()) {
    per[key] = f.per_parameter(value.get<std::int64_t>());
  }
  json["bytes_per_parameter"] = per;
  for (const TensorFootprint& t : f.tensors) {
    json["tensors"].push_back({{"name", t.spec.name},
                               {"role", role_name(t.spec.role)},
                               {"rows", t.spec.shape.rows()},
                               {"cols", t.spec.shape.cols()},
                               {"format", format_name(t.spec.format.kind)},
                               {"rule", t.rule},
                               {"bytes", to_json(t.bytes)}});
  }
  if (joint != nullptr) json["traffic"] = to_json(*joint);
  if (schema != nullptr) json["table"] = nlohmann::ordered_json::parse(to_json(*schema));
  return json.dump(2);
}

// What a rank sends for a step when several train the model.
std::string explain_traffic(const JointForecast& joint, const ModelFootprint& f) {
  const TrafficForecast& traffic = joint.traffic;
  const auto bytes = [](std::int64_t n) { return human_bytes(static_cast<double>(n)); };
  std::string text = fmt::format(
      "--dp {} on {} ranks: each sends {} a step ({:.4f} B/param): gradients {}, statistics {}, "
      "sums {}; error feedback takes {} beside the state.\n",
      method_name(joint.spec.method), joint.ranks, bytes(traffic.total()),
      f.per_parameter(traffic.total()), bytes(traffic.gradients), bytes(traffic.statistics),
      bytes(traffic.sums), bytes(traffic.state));
  if (traffic.warmup > 0) {
    text += fmt::format(
        "during the warm-up gradients take {}; where it is {:g} of the steps, {} a step are sent "
        "in the mean.\n",
        bytes(traffic.warmup), *joint.spec.warmup, bytes(joint.mean().total()));
  }
  return text;
}

void print(const std::string& model, const Recipe& recipe, const ModelFootprint& forecast,
           const ModelFootprint* live, const std::string& json,
           const JointForecast* joint = nullptr, const TableSchema* schema = nullptr) {
  OutputFile output("--json", json, kJsonBegins);
  if (json != "-") {
    fmt::print("{} with recipe {}\n\n{}{}", model, recipe.name, render(forecast, live),
               explain(forecast, live, joint));
    if (joint != nullptr) fmt::print("{}", explain_traffic(*joint, forecast));
    if (schema != nullptr) fmt::print("{}", render_columns(*schema));
  }
  output.write(to_json(model, recipe, forecast, live, joint, schema));
}

// The footprint with gradients as exchanges between ranks keep them.
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

void inspect_traffic(const InspectOptions& options) {
  const TrafficQuestion question{options.model, options.ranks, options.parts, options.links};
  OutputFile output("--json", options.json, kJsonBegins);  // before anything may stand in its place
  if (options.json != "-") fmt::print("{}", traffic_table(question));
  output.write(traffic_json(question));
}

void inspect_joint(const InspectOptions& options) {
  check(options.checkpoint.empty() && !options.live,
        "--dp forecasts what --model would need; leave out ",
        options.live ? "--live" : "the CHECKPOINT");
  if (options.method == "all") return inspect_traffic(options);
  check(options.ranks.size() == 1, "--ranks: several numbers need --dp all");
  JointForecast joint{{.method = parse_method(options.method)}, options.ranks.front(), {}};
  const Recipe recipe = joint_recipe(joint.spec, load_recipe(options.recipe, options.overrides));
  const auto plan = plan_model(options.model, 0, 0, recipe);
  joint.traffic = forecast_traffic(plan, recipe.updates(), joint.spec, joint.ranks, joint.ranks,
                                   recipe.gradient_format);
  print(options.model, recipe, joint_footprint(plan, recipe, joint.spec), nullptr, options.json,
        &joint);
}

// What the ledger counts while a model and its optimizer exist, beside what existed before.
ModelFootprint allocate_and_count(const std::string& spec, const ModelInput& input,
                                  std::int64_t outputs, const Recipe& recipe) {
  const Footprint before = ledger_footprint();
  const auto model = make_model(spec, input, outputs, recipe, 1);
  Optimizer optimizer = make_optimizer(*model, recipe, 1, 1);
  ModelFootprint live = live_footprint(*model, optimizer, recipe);
  Footprint held = ledger_footprint();
  held -= before;
  live.total = held;
  return live;
}

void run_inspect(const InspectOptions& options, bool recipe_given, bool ranks_given) {
  check(options.checkpoint.empty() != options.model.empty(),
        "inspect: give either a CHECKPOINT or --model (with --recipe); see 'tritgrad inspect "
        "--help'");
  check(options.checkpoint.empty() || (!recipe_given && options.overrides.empty()),
        "inspect: the checkpoint '", options.checkpoint,
        "' holds its recipe; leave out --recipe and --set, or give --model instead");
  check_output("--json", options.json, kJsonBegins);  // refuses what it must before the work begins
  const bool joint = !options.method.empty() && options.method != "none";
  check(joint || !ranks_given, "--ranks are those of --dp; name a method or leave the option out");
  check(options.method != "all" || (!recipe_given && options.overrides.empty()),
        "--dp all: each way of training has a recipe of its own; leave out --recipe and --set");
  if (joint) return inspect_joint(options);
  if (!options.checkpoint.empty()) {
    const SavedRun run(options.checkpoint);
    const SavedModel saved = run.model();
    const std::optional<TableSchema> schema = run.table();
    const bool of_table = schema && schema->table_columns > 0;  // else of a built-in set
    const auto plan = plan_model(saved.model, saved.input, saved.outputs, saved.recipe);
    const ModelFootprint forecast = forecast_footprint(plan, saved.recipe);
    const ModelFootprint live =
        allocate_and_count(saved.model, saved.input, saved.outputs, saved.recipe);
    print(saved.model, saved.recipe, forecast, &live, options.json, nullptr,
          of_table ? &*schema : nullptr);
    return;
  }
  const Recipe recipe = load_recipe(options.recipe, options.overrides);
  const ModelFootprint forecast =
      forecast_footprint(plan_model(options.model, 0, 0, recipe), recipe);
  if (options.live) {
    const ModelFootprint live = allocate_and_count(options.model, 0, 0, recipe);
    print(options.model, recipe, forecast, &live, options.json);
  } else {
    print(options.model, recipe, forecast, nullptr, options.json);
  }
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("inspect", "where every byte goes, by tensor and category");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "file written by train --save");
  command->add_option("--model", options->model,
                      "complete, such as mlp:784-512-512-10 or conv:32x32x3-32-M-64-10; nothing is "
                      "allocated");
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
      ->check(within(1, 1 << 20));
  command
      ->add_option("--micro-batches", options->parts,
                   "of --dp all: parts of a batch, a multiple of the ranks [one for each]")
      ->check(within(1, 1 << 20));
  command->add_option("--link", options->links, "of --dp all: speeds of links in Gbit/s")
      ->delimiter(',')
      ->capture_default_str()
      ->check(within(1e-3, 1e6));
  command->add_option("--json", options->json, "write as JSON to FILE, - = standard output");
  command->footer(
      "Examples:\n"
      "  tritgrad inspect --model mlp:784-512-512-10 --recipe votes --live\n"
      "  tritgrad inspect --model mlp:8192-65536-65536-32768 --recipe latent8\n"
      "  tritgrad inspect --model mlp:784-512-512-10 --dp all --ranks 2,8,64 --link 1,10\n"
      "  tritgrad inspect m.safetensors");
  command->callback([command, options] {
    run_inspect(*options, command->count("--recipe") > 0, command->count("--ranks") > 0);
  });
}

// The command of earlier versions says what took its place.
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
