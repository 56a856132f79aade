// The data that a command reads for a checkpoint: those that it was trained on, or what the command
// names.
#pragma once

#include <CLI/CLI.hpp>

#include "models/training/saved_run.h"
#include "tools/cli/common_options.h"

namespace tritgrad {

// Resets the options for columns of the file that a checkpoint names, which mean nothing to data of
// another kind.
void forget_columns(const std::string& data, TrainSpec& saved);

// Opens the data that a checkpoint names, as seen from where the program runs now.
Dataset open_saved_data(const SavedRun& saved, const CommonOptions& options);

// Fills in the options of a command that scores the checkpoint: all are the checkpoint's own but
// for what the command names. Returns what the model knows of its table.
TableSchema adopt_scored_data(const CLI::App& command, const SavedRun& run, CommonOptions& options);

// Opens the data to score a checkpoint on, and says what was noticed. Throws Error where the
// checkpoint's own have changed since.
Dataset open_scored_data(const CLI::App& command, const SavedRun& run, const CommonOptions& options,
                         const TableSchema& schema);

}  // namespace tritgrad
