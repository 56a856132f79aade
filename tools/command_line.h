// How the program reads its arguments: configuration files, mistyped names, options in common.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/open_dataset.h"
#include "tools/distinct_files.h"
#include "tools/train.h"

namespace tritgrad {

// Parses and runs. `--config FILE.toml` of a command stands for the options that the file holds;
// options given on the command line win. Returns the exit code; throws Error with one sentence.
int run_command_line(CLI::App& app, int argc, char** argv);

// Options in common, bound to what they fill in.
struct CommonOptions {
  TrainOptions train;
  std::string cache;
  std::string lr;
  std::string compute;
  std::string pixels;
  std::string config;  // its options are among these already
  int threads = 0;
  std::string json;
};

void add_data_options(CLI::App& command, CommonOptions& options);
void add_training_options(CLI::App& command, CommonOptions& options);

// Applies --threads and --lr, opens --data.
void apply(CommonOptions& options);
Dataset open_data(const CommonOptions& options);
// Whether --data names a table that --label and --header are for.
bool is_csv(const std::string& data);

// The files of --data and --config. To be called once the options are complete.
std::vector<NamedFile> input_files(const CommonOptions& options);
// Throws Error when an output would replace what is read, or another output. To be called once the
// options are complete.
void check_outputs(const CommonOptions& options);

// What --cache says (empty: nothing), else the user's own: fetched data and finished runs. Throws
// Error for a file.
std::filesystem::path cache_folder(const std::string& option);

enum class Writing {
  kAtOnce,   // a new file replaces the old one, so its folder must be writable
  kInPlace,  // what is there is written over
};
// Refuses a path that cannot be written before any work is done for it. `option` begins the
// message.
void check_writable(const char* option, const std::string& path,
                    Writing writing = Writing::kAtOnce);

// Writes `text` and a newline to the file, or to standard output for "-"; does nothing for "".
void write_json(const std::string& path, const std::string& text);

}  // namespace tritgrad
