// The options that commands which read data or train have in common.
#pragma once

#include <filesystem>
#include <string>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"
#include "tools/cli/output_file.h"
#include "tools/cli/training_observer.h"

namespace CLI {
class App;
}

namespace tritgrad {

// Options in common, bound to what they fill in.
struct CommonOptions {
  TrainOptions train;
  TerminalOptions terminal;
  std::string lr;
  std::string compute;
  std::string config;  // its options are among these already
  int threads = 0;
  std::string json;
};

void add_data_options(CLI::App& command, CommonOptions& options);
// Those of any training. A command that trains one model has also those of a single run.
void add_training_options(CLI::App& command, CommonOptions& options, bool single_run);

// Applies --threads and --lr, opens --data.
void apply(CommonOptions& options);
// to_score: for a model that knows its classes, of which a table may have one alone.
Dataset open_data(const CommonOptions& options, bool to_score = false);
// The data and the configuration file.
std::vector<InputFile> input_files(const CommonOptions& options);
// The file of a recipe; none for a built-in one.
InputFile recipe_file(const char* option, const std::string& recipe);
// The command that fetches --data; empty for what is built in, and for files.
std::string fetch_command(const CommonOptions& options);
// Whether --data names a table that --label and --header are for.
bool is_csv(const std::string& data);

// What --cache says (empty: nothing), else the user's own: fetched data and finished runs. Throws
// Error for a file.
std::filesystem::path cache_folder(const std::string& option);

}  // namespace tritgrad
