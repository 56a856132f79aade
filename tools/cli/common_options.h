// The options that commands which read data or train have in common, and the bounds of numbers.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/table_schema.h"
#include "engine/text.h"
#include "models/training/train.h"
#include "tools/cli/output_file.h"
#include "tools/cli/training_observer.h"

namespace tritgrad {

// Refuses what is no number from `low` to `high`, both included: "'0' found, a whole number from 1
// to 1000 expected".
template <typename Number>
CLI::Validator in_range(Number low, Number high) {
  const std::string range = fmt::format("{} to {}", low, high);
  const auto refuse = [=](const std::string& text) -> std::string {
    std::optional<Number> number;
    if constexpr (std::integral<Number>) {
      const std::string_view digits = without_plus(text);
      const char* end = digits.data() + digits.size();
      Number whole = 0;
      const auto [stop, error] = std::from_chars(digits.data(), end, whole);
      // CLI11 would take 010 for eight.
      const bool octal = digits.size() > 1 && digits[0] == '0';
      if (stop == end && error == std::errc() && !octal) number = whole;
    } else {
      number = parse_number(text);
    }
    if (number && *number >= low && *number <= high) return "";
    return fmt::format("'{}' found, a {}number from {} expected", text,
                       std::integral<Number> ? "whole " : "", range);
  };
  return {refuse, range};
}

// The members that the options fill in.
struct CommonOptions {
  TrainOptions train;
  TerminalOptions terminal;
  std::string lr;
  std::string compute;
  std::string config;  // run_command_line() has put its options among the others
  int threads = 0;
  std::string json;
};

void add_data_options(CLI::App& command, CommonOptions& options);
// Adds the options of any training, and those of a single run where the command trains one model.
void add_training_options(CLI::App& command, CommonOptions& options, bool single_run);

// Sets the number of threads, checks --augment, and turns --lr and --compute into overrides of the
// recipe.
void apply(CommonOptions& options);
// The files of --data and --config.
std::vector<InputFile> input_files(const CommonOptions& options);
// The file of a recipe, which `option` names; none for a built-in one.
InputFile recipe_file(const char* option, const std::string& recipe);
// Opens --data. A table that is opened to score a model is read by the schema that the model keeps
// of its columns and classes, a text is cut by the tokenizer that it keeps.
Dataset open_data(const CommonOptions& options,
                  const std::optional<TableSchema>& schema = std::nullopt,
                  const std::optional<Vocabulary>& vocabulary = std::nullopt);
// The command that fetches --data; empty for what is built in, and for files.
std::string fetch_command(const CommonOptions& options);
// Says what was noticed while data were read, on standard error: warnings, and notes unless quiet.
void say_remarks(const Remarks& remarks, bool quiet);
// Whether --data names a table that --label, --header and the like are for.
bool is_csv(const std::string& data);

// The folder of fetched data and finished runs: the one that --cache names, or the user's own where
// `option` is empty. Throws Error for a file.
std::filesystem::path cache_folder(const std::string& option);

}  // namespace tritgrad
