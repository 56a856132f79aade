#include "tools/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "engine/atomic_file.h"
#include "engine/augmentation.h"
#include "engine/check.h"
#include "engine/nearest.h"
#include "engine/open_dataset.h"
#include "engine/parallel.h"
#include "engine/parse_number.h"
#include "optim/parallel/communicator.h"
#include "tools/config_file.h"
#include "tools/distinct_files.h"
#include "tools/fetch.h"
#include "tools/shell_quoted.h"
#include "tools/within.h"

namespace tritgrad {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string>::iterator find_command(std::vector<std::string>& arguments,
                                                const CLI::App& app) {
  const auto names = command_names(app);
  return std::find_if(arguments.begin(), arguments.end(), [&](const std::string& a) {
    return std::find(names.begin(), names.end(), a) != names.end();
  });
}

// Several processes would do the same work, and write the same files at the same time.
void check_ranks(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  check(launched_ranks() == 1 || command == arguments.end() || *command == "train", "there are ",
        launched_ranks(), " ranks, but only 'train' can share its work among them; start '",
        command == arguments.end() ? "" : *command, "' without mpirun");
}

// Puts the options in the file of --config in front of the command's own.
std::vector<std::string> expand_config(std::vector<std::string> arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  if (command == arguments.end()) return arguments;
  const auto config = std::find_if(command, arguments.end(), [](const std::string& a) {
    return a == "--config" || a.starts_with("--config=");
  });
  if (config == arguments.end()) return arguments;
  check(std::none_of(
            config + 1, arguments.end(),
            [](const std::string& a) { return a == "--config" || a.starts_with("--config="); }),
        "--config: given twice; put all options into one file");
  const bool inline_value = config->size() > 8;
  check(inline_value || config + 1 != arguments.end(), "--config: a file name is missing");
  const std::string path = inline_value ? config->substr(9) : *(config + 1);
  const std::vector<std::string> inserted =
      option_arguments(read_toml("configuration file", path), "configuration file '" + path + "'",
                       *app.get_subcommand(*command));
  const auto position = command - arguments.begin();
  arguments.insert(arguments.begin() + position + 1, inserted.begin(), inserted.end());
  return arguments;
}

// An empty value is mostly that of a shell variable which is not set. An empty label takes back
// that of a configuration file.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0 || option->check_lname("label")) continue;
    option->check([](const std::string& value) -> std::string {
      return value.empty() ? "is empty; give a value, or leave it out" : "";
    });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    refuse_empty_values(*command);
  }
}

// `name`: of the command, with those above it.
[[noreturn]] void explain_extra(const CLI::App& command, const std::string& name,
                                const std::string& extra) {
  const std::string word = extra.substr(0, extra.find('='));
  const bool option = word.starts_with("-");
  const bool has_commands = !command_names(command).empty();
  fail(
      "unknown ",
      option         ? "option '"
      : has_commands ? "command '"
                     : "argument '",
      word, "' of '", name, "'",
      did_you_mean(word, option || !has_commands ? option_names(command) : command_names(command)));
}

// The commands that were given, from the program on.
std::vector<const CLI::App*> given_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands{&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

[[noreturn]] void explain_extras(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::string name;
  for (const CLI::App* command : given_commands(app)) {
    if (command == &app) continue;
    name += (name.empty() ? "" : " ") + command->get_name();
    const std::vector<std::string> extras = command->remaining(false);
    if (!extras.empty()) explain_extra(*command, name, extras.front());
  }
  const std::string word = arguments.empty() ? "" : arguments.front();
  fail("unknown command '", word, "'", did_you_mean(word, command_names(app)));
}

}  // namespace

int run_command_line(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  check_ranks(arguments, app);
  arguments = expand_config(std::move(arguments), app);
  refuse_empty_values(app);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ExtrasError&) {
    explain_extras(app, arguments);
  } catch (const CLI::RequiredError& error) {
    if (!arguments.empty() && app.get_subcommands().empty()) explain_extras(app, arguments);
    std::string help;
    for (const CLI::App* command : given_commands(app)) help += command->get_name() + " ";
    fail(error.what(), "; see '", help, "--help'");
  } catch (const CLI::ParseError& error) {
    fail(error.what());
  }
  return 0;
}

void check_writable(const char* option, const std::string& path, Writing writing) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(status.type() != fs::file_type::none, option, ": '", path, "' is no possible path (",
        error.message(), "); name another file");
  check(!fs::is_directory(status), option, ": '", path, "' is a folder; name a file");
  // A link is followed to the file that it names.
  const fs::path file = fs::is_regular_file(status) ? fs::canonical(path) : fs::path(path);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  check(fs::is_directory(folder), option, ": there is no folder '", folder.string(),
        "'; make it first");
  // Pipes and devices are written to, never replaced.
  const bool in_place =
      fs::exists(status) && (writing == Writing::kInPlace || !fs::is_regular_file(status));
  if (in_place) {
    check(::access(path.c_str(), W_OK) == 0, option, ": '", path,
          "' cannot be written; choose another file");
  } else {
    check(::access(folder.c_str(), W_OK) == 0, option, ": the folder '", folder.string(),
          "' cannot be written; choose another");
  }
}

void add_data_options(CLI::App& command, CommonOptions& options) {
  command.option_defaults()->take_last();
  command
      .add_option("--data", options.train.data,
                  "a name that 'tritgrad data' lists, FILE.csv, a folder of IDX or of CIFAR-10's "
                  "files, or X.npy,Y.npy")
      ->capture_default_str();
  command.add_option(
      "--cache", options.cache,
      "folder of fetched data and finished runs [TRITGRAD_DATA, else the user's cache folder]");
  command.add_option("--label", options.train.label,
                     "label column of a CSV file: name, or number from 0 (-1 = last) [last]");
  command.add_option("--header", options.train.header, "CSV header line: auto, yes or no")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "threads; results do not depend on it [all]")
      ->check(within(1, 1024));
  command.add_option("--config", options.config,
                     "FILE.toml with options as keys; [set] overrides the recipe");
}

void add_training_options(CLI::App& command, CommonOptions& options) {
  TrainOptions& train = options.train;
  command.option_defaults()->take_last();
  command
      .add_option("--model", train.model,
                  "mlp:WIDTH,WIDTH[:norm=batch|layer|rms|none][:activation=relu|squared_relu|"
                  "tanh][:dropout=P], or, for images, conv:WIDTH,WIDTH,M,...: 3 x 3 convolutions "
                  "with batch norm and rectifier, M is 2 x 2 max pooling")
      ->capture_default_str();
  command
      .add_option("--epochs", train.epochs,
                  "passes over the training rows [60; 10 from 10,000 rows]")
      ->check(within(1, 1000000));
  command.add_option("--batch", train.batch, "rows per step [32; 128 from 10,000 rows]")
      ->check(within(1, 1000000));
  command
      .add_option("--micro-batches", train.micro_batches,
                  "parts of each batch whose gradients are added up, to save activations; batch "
                  "norm then sees the parts [1]")
      ->check(within(1, 1000000));
  command.add_option("--lr", options.lr, "learning rate of the weights [the recipe's]");
  command.add_option("--compute", options.compute,
                     "int8 or fp32: products with ternary weights [the recipe's]");
  command.add_option("--folds", train.folds, "K-fold cross-validation instead of one test split")
      ->check(within(2, 1000));
  command.add_option("--val", train.validation, "share of the training rows held out to watch")
      ->check(within(0.0, 0.9));
  command.add_option("--augment", train.augment,
                     "of training images: shift=PIXELS, flip, or shift=PIXELS,flip [none]");
  command
      .add_option("--label-smoothing", train.label_smoothing,
                  "share of the target that is spread over all classes [0; 0.1 for images from "
                  "10,000 rows]")
      ->check(within(0.0, 0.9));
  command.add_option("--pixels", options.pixels,
                     "linear, or sqrt: square roots of pixels are standardised instead [sqrt for "
                     "grey images of 8 bits a pixel]");
  command
      .add_option("--set", train.overrides, "KEY=VALUE: override the recipe, e.g. weight.lr=0.1")
      ->take_all();
  command.add_option("--json", options.json,
                     "write the result as JSON to FILE, - = standard output");
  command.add_flag("--quiet", train.quiet, "no progress, no summary");
}

void apply(CommonOptions& options) {
  if (options.threads > 0) set_thread_count(options.threads);
  check_writable("--json", options.json);
  check_writable("--save", options.train.save);
  check_writable("--log", options.train.log, Writing::kInPlace);
  options.train.augment = to_text(parse_augmentation(options.train.augment));
  if (!options.pixels.empty()) options.train.pixels = parse_pixel_scale(options.pixels);
  if (!options.lr.empty()) {
    const std::optional<double> lr = parse_number(options.lr);
    check(lr.has_value(), "--lr: '", options.lr, "' is no number; give one such as 0.01");
    // As TOML writes it, which knows no ".01".
    options.train.overrides.push_back(fmt::format("weight.lr={}", *lr));
  }
  if (!options.compute.empty()) options.train.overrides.push_back("compute=" + options.compute);
}

namespace {

// Data that are not fetched need no folder, so none is asked for.
std::string folder_of_fetched(const CommonOptions& options) {
  const bool fetched = data_source(options.train.data, "").kind == DataSource::Kind::kFetched;
  return fetched || !options.cache.empty() ? cache_folder(options.cache).string() : "";
}

}  // namespace

std::vector<NamedFile> input_files(const CommonOptions& options) {
  std::vector<NamedFile> files = data_files(options.train.data, folder_of_fetched(options));
  files.push_back({"--config", options.config});
  return files;
}

void check_outputs(const CommonOptions& options) {
  const TrainOptions& train = options.train;
  const NamedFile json{"--json", options.json}, log{"--log", train.log, true};
  check(train.save != "-", "--save: a checkpoint cannot go to standard output; name a file");
  check(train.log != "-", "--log: the log cannot go to standard output; name a file");
  std::vector<NamedFile> inputs = input_files(options);
  // The recipe of a resumed run is that of its checkpoint, whatever became of the file.
  if (train.resume.empty()) {
    const std::vector<NamedFile> recipe = recipe_files("--recipe", train.recipe);
    inputs.insert(inputs.end(), recipe.begin(), recipe.end());
  }
  // A run may be saved where it was resumed from.
  check_distinct_files({{"--resume", train.resume}}, {json, log});
  check_distinct_files(inputs, {{"--save", train.save}, json, log});
}

std::filesystem::path cache_folder(const std::string& option) {
  if (option.empty()) return default_cache_dir();
  std::error_code error;
  check(!std::filesystem::exists(option, error) || std::filesystem::is_directory(option, error),
        "--cache: '", option, "' is a file; name a folder");
  return option;
}

bool is_csv(const std::string& data) {
  return data_source(data, "").kind == DataSource::Kind::kCsv;
}

Dataset open_data(const CommonOptions& options) {
  using Header = CsvOptions::Header;
  const TrainOptions& train = options.train;
  DataOptions data;
  data.cache_folder = folder_of_fetched(options);
  if (!options.cache.empty()) data.fetch_arguments = " --cache " + shell_quoted(options.cache);
  check(train.header == "auto" || train.header == "yes" || train.header == "no", "--header: '",
        train.header, "', expected auto, yes or no");
  if (train.header != "auto") data.csv.header = train.header == "yes" ? Header::kYes : Header::kNo;
  data.csv.label = train.label;
  Dataset dataset = open_dataset(train.data, data);
  const bool csv = is_csv(train.data);
  check(csv || (train.label.empty() && train.header == "auto"), "--label and --header are for CSV ",
        "files, which '", train.data, "' is not; leave them out or name a file by --data");
  return dataset;
}

void write_json(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  if (path == "-") {
    fmt::print("{}\n", text);
    return;
  }
  const std::string line = text + "\n";
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    // A pipe or a device such as /dev/stdout is written to, not replaced.
    std::ofstream out(path);
    out << line << std::flush;
    check(out.good(), "--json: '", path, "' cannot be written; choose another file");
    return;
  }
  replace_file(path, std::as_bytes(std::span(line)));
}

}  // namespace tritgrad
