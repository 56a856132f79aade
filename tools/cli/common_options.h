// The options that commands which read data or train have in common.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/data/open_dataset.h"
#include "engine/data/table_schema.h"
#include "models/training/train.h"
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
// `schema`: of a model that knows the columns and classes of its table.
Dataset open_data(const CommonOptions& options,
                  const std::optional<TableSchema>& schema = std::nullopt);
// The command that fetches --data; empty for what is built in, and for files.
std::string fetch_command(const CommonOptions& options);
// Says what was noticed while data were read, on standard error: warnings, and notes unless quiet.
void say_remarks(const Remarks& remarks, bool quiet);
// Whether --data names a table that --label, --header and the like are for.
bool is_csv(const std::string& data);

// What --cache says (empty: nothing), else the user's own: fetched data and finished runs. Throws
// Error for a file.
std::filesystem::path cache_folder(const std::string& option);

}  // namespace tritgrad
