// The data that a command reads for a checkpoint: those that it was trained on, or what the command
// names.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>

#include "models/training/saved_run.h"
#include "tools/cli/common_options.h"

namespace tritgrad {

// Resets the options for columns of the file that a checkpoint names, which mean nothing to data of
// another kind.
void forget_columns(const std::string& data, TrainSpec& saved);

// Returns the tokenizer of a language model; none of other models.
std::optional<Vocabulary> vocabulary_of(const SavedRun& saved);

// Opens the data that a checkpoint names, as seen from where the program runs now.
Dataset open_saved_data(const SavedRun& saved, const CommonOptions& options);

// Whether an option, such as "--data", is given.
using Given = std::function<bool(const char* option)>;
// Whether it is on the command line.
Given given_on(const CLI::App& command);

// Fills in the options of a command that scores the checkpoint: all are the checkpoint's own but
// for what is given. Returns what the model knows of its table.
TableSchema adopt_scored_data(const Given& given, const SavedRun& run, CommonOptions& options);

// Opens the data to score a checkpoint on. Throws Error where the
// checkpoint's own have changed since.
Dataset open_scored_data(const Given& given, const SavedRun& run, const CommonOptions& options,
                         const TableSchema& schema);

}  // namespace tritgrad
