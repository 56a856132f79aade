// From what a user names to a data set in memory.
#pragma once

#include <string>
#include <vector>

#include "engine/csv.h"
#include "engine/dataset.h"

namespace tritgrad {

struct OpenOptions {
  std::string cache;  // folder of fetched sets; empty: default_cache_folder()
  CsvOptions csv;     // for CSV files
};

// "iris", "wdbc", "digits", "wine" (built in), "mnist", "fashion-mnist" (fetched), a .csv file, a folder
// with the four IDX files, or "x.npy,y.npy".
// Throws Error: for an unknown name with the nearest known one, for a set that is not in the cache with
// the command that fetches it.
Dataset open_dataset(const std::string& spec, const OpenOptions& options);

// TRITGRAD_DATA, else XDG_CACHE_HOME/tritgrad, else HOME/.cache/tritgrad.
std::string default_cache_folder();

struct KnownDataset {
  std::string name;
  std::int64_t rows, features;
  int classes;
  std::string kind;    // "built in" or "fetched"
  std::string source;  // origin and licence
};
const std::vector<KnownDataset>& known_datasets();

}  // namespace tritgrad
