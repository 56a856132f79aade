#include "tools/cli/common_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>

#include "engine/check.h"
#include "engine/data/augmentation.h"
#include "engine/data/resize.h"
#include "engine/files/read_file.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "models/networks/llama.h"
#include "models/recipes/recipe.h"
#include "optim/parallel/communicator.h"
#include "tools/cli/command_line.h"
#include "tools/cli/fetch.h"

namespace tritgrad {
namespace {

// Adds one option of the list in TrainSpec.
template <typename T>
void add_field_option(CLI::App& command, const Field& field, T& value) {
  const auto add = [&] { return command.add_option(field.option, value, field.help); };
  if constexpr (std::is_same_v<T, bool>) {
    command.add_flag(field.option, value, field.help);
  } else if constexpr (std::is_same_v<T, std::string>) {
    add()->capture_default_str();
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    add()->take_all();
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    add()->capture_default_str()->check(in_range<T>(0, std::numeric_limits<T>::max()));
  } else if constexpr (std::is_integral_v<T>) {
    add()->check(in_range(static_cast<T>(field.low), static_cast<T>(field.high)));
  } else {
    if constexpr (requires(double number) { value = number; }) {
      if (field.low < field.high) {
        add()->check(in_range(field.low, field.high));
        return;
      }
    }
    if constexpr (!std::is_same_v<T, double>) {
      command.add_option_function<std::string>(
          field.option,
          [&value, field](const std::string& text) { parse_field(field, text, value); },
          field.help);
    }
  }
}

// Adds those options of a run that `wanted` picks by their traits.
template <typename Wanted>
void add_fields(CLI::App& command, TrainSpec& spec, const Wanted& wanted) {
  command.option_defaults()->take_last();
  visit(spec, [&](const Field& field, auto& value) {
    if (wanted(field.traits)) add_field_option(command, field, value);
  });
}

}  // namespace

void add_data_options(CLI::App& command, CommonOptions& options) {
  add_fields(command, options.train, [](unsigned traits) { return (traits & kOfData) != 0; });
  command.add_option(
      "--cache", options.terminal.cache,
      "folder of fetched data and finished runs [TRITGRAD_DATA, else the user's cache folder]");
  command.add_option("--threads", options.threads, "threads; results do not depend on it [all]")
      ->check(in_range(1, 1024));
  command.add_option("--config", options.config,
                     "FILE.toml with options as keys; [set] overrides the recipe");
}

void add_training_options(CLI::App& command, CommonOptions& options, bool single_run) {
  add_fields(command, options.train, [&](unsigned traits) {
    return (traits & kOfData) == 0 && (single_run || (traits & kSingleRun) == 0);
  });
  command.add_option("--lr", options.lr, "learning rate of the weights [the recipe's]");
  command.add_option("--compute", options.compute,
                     "int8 or fp32: products with ternary weights [the recipe's]");
  command.add_option("--json", options.json,
                     "write the result as JSON to FILE, - = standard output");
  command.add_flag("--quiet", options.terminal.quiet, "no progress, no summary");
}

void apply(CommonOptions& options) {
  check(launched_ranks() == 1 || !is_pipe(options.train.data),
        "--data: a pipe can be read by one process ", "alone, and there are ", launched_ranks(),
        " ranks; write the table to a file and name it");
  if (options.threads > 0) set_thread_count(options.threads);
  options.train.augment = to_text(parse_augmentation(options.train.augment));
  if (!options.lr.empty()) {
    const std::optional<double> lr = parse_number(options.lr);
    check(lr.has_value(), "--lr: '", options.lr, "' is no number; give one such as 0.01");
    // TOML knows no ".01".
    options.train.overrides.push_back(fmt::format("weight.lr={}", *lr));
  }
  if (!options.compute.empty()) options.train.overrides.push_back("compute=" + options.compute);
}

namespace {

// The folder of fetched sets. Data that are not fetched need none, so none is asked for.
std::string folder_of_fetched(const CommonOptions& options) {
  const bool fetched = data_source(options.train.data, "").kind == DataSource::Kind::kFetched;
  return fetched || !options.terminal.cache.empty() ? cache_folder(options.terminal.cache).string()
                                                    : "";
}

// The arguments of `tritgrad data fetch NAME` that make it fill the folder of --cache.
std::string fetch_arguments(const CommonOptions& options) {
  return options.terminal.cache.empty() ? "" : " --cache " + shell_quoted(options.terminal.cache);
}

}  // namespace

std::filesystem::path cache_folder(const std::string& option) {
  if (option.empty()) return default_cache_dir();
  std::error_code error;
  check(!std::filesystem::exists(option, error) || std::filesystem::is_directory(option, error),
        "--cache: '", option, "' is a file; name a folder");
  return option;
}

std::string fetch_command(const CommonOptions& options) {
  const std::string& data = options.train.data;
  if (data_source(data, "").kind != DataSource::Kind::kFetched) return "";
  return "tritgrad data fetch " + data + fetch_arguments(options);
}

std::vector<InputFile> input_files(const CommonOptions& options) {
  std::vector<InputFile> files{{"--config", options.config}};
  for (const std::string& path :
       data_source(options.train.data, folder_of_fetched(options)).paths) {
    files.push_back({"--data", path});
  }
  return files;
}

InputFile recipe_file(const char* option, const std::string& recipe) {
  return {option, builtin_recipe_text(recipe).empty() ? recipe : ""};
}

bool is_csv(const std::string& data) {
  return data_source(data, "").kind == DataSource::Kind::kCsv;
}

namespace {

// "a, b" -> {"a", "b"}.
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  std::string name;
  std::istringstream in(text);
  while (std::getline(in, name, ',')) {
    const std::size_t begin = name.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    names.push_back(name.substr(begin, name.find_last_not_of(' ') - begin + 1));
  }
  return names;
}

CsvOptions csv_options(const TrainSpec& train, const std::optional<TableSchema>& schema) {
  using Header = CsvOptions::Header;
  CsvOptions csv;
  check(train.header == "auto" || train.header == "yes" || train.header == "no", "--header: '",
        train.header, "', expected auto, yes or no");
  if (train.header != "auto") csv.header = train.header == "yes" ? Header::kYes : Header::kNo;
  csv.task = train.task;
  csv.label = train.label;
  csv.missing = parse_missing(train.missing);
  csv.max_categories = train.max_categories;
  csv.columns = split_names(train.columns);
  csv.drop = split_names(train.drop);
  csv.words = split_names(train.words);
  csv.schema = schema ? &*schema : nullptr;
  return csv;
}

// Throws Error where options of a table are given for other data.
void check_table_options(const TrainSpec& train) {
  check(train.label.empty() && train.header == "auto", "--label and --header are for CSV ",
        "files, which '", train.data, "' is not; leave them out or name a file by --data");
  const std::vector<FieldText> given = field_texts(train), untouched = field_texts(TrainSpec());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Field& field = given[i].field;
    check((field.traits & kOfTable) == 0 || given[i].text == untouched[i].text, field.option,
          " is for CSV files, which '", train.data,
          "' is not; leave it out or name a file by --data");
  }
}

}  // namespace

Dataset open_data(const CommonOptions& options, const std::optional<TableSchema>& schema,
                  const std::optional<Vocabulary>& vocabulary) {
  const TrainOptions& train = options.train;
  DataOptions data;
  data.cache_folder = folder_of_fetched(options);
  data.fetch_arguments = fetch_arguments(options);
  data.csv = csv_options(train, schema);
  data.vocabulary = vocabulary;
  data.tokens = train.tokens;
  data.window = context_of(train.model);
  Dataset dataset = open_dataset(train.data, data);
  check(dataset.is_text() || train.tokens == TrainSpec().tokens, "--tokens is for texts, which '",
        train.data, "' is not; leave it out");
  if (!is_csv(train.data)) check_table_options(train);
  // A model takes rows of a table as images of the size that it knows.
  const bool scores_table = schema && !dataset.is_image();
  if (train.resize > 0 && !scores_table) resize_images(dataset, train.resize);
  return dataset;
}

void say_remarks(const Remarks& remarks, bool quiet) {
  for (const std::string& warning : remarks.warnings) {
    std::fprintf(stderr, "warning: %s\n", printable(warning).c_str());
  }
  for (const std::string& note : remarks.notes) {
    if (!quiet) std::fprintf(stderr, "note: %s\n", printable(note).c_str());
  }
}

}  // namespace tritgrad
