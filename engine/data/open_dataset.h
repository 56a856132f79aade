// One entrance for every kind of data: names, files and folders.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "engine/data/dataset.h"
#include "engine/data/vocabulary.h"

namespace tritgrad {

struct KnownDataset {
  const char* name;
  std::int64_t rows;  // training and test together
  std::int64_t features;
  int classes;  // 0: the label is a number to predict
  std::int64_t published_test_rows;
  bool built_in;  // part of the library; the others are fetched into the cache folder
  const char* source;
  const char* licence;
};

std::span<const KnownDataset> known_datasets();

// "iris", "wdbc", "digits", "wine" or "diabetes", which are part of the library
// (engine/data/README.md has sources and licence). Throws Error for other names.
Dataset builtin_dataset(const std::string& name, TaskKind task = TaskKind::kAuto);

struct DataOptions {
  CsvOptions csv;
  std::string cache_folder;     // fetched sets lie in <cache_folder>/<name>
  std::string fetch_arguments;  // what to add to "tritgrad data fetch NAME" to fill that folder
  std::optional<Vocabulary> vocabulary;  // of a model's text; else `tokens` names it
  std::string tokens = "bytes";          // what a text is cut into
  std::int64_t window =
      0;  // tokens that the language model looks at together; 0: it is no such model
};

// The place of the rows of a data set.
struct DataSource {
  enum class Kind { kBuiltIn, kFetched, kNpyPair, kNpz, kText, kFolder, kCsv };
  Kind kind;
  // Files or one folder, whether or not they exist; none for what is part of the library.
  std::vector<std::string> paths;
};

// Returns what open_dataset() would read.
DataSource data_source(const std::string& spec, const std::string& cache_folder);

// `spec` is, in this order:
//   "iris", "wdbc", "digits", "wine",  a set that is part of the library
//   "diabetes"
//   "mnist", "fashion-mnist",          a fetched set in <cache_folder>/<name>: four IDX files,
//   "cifar10", "letter", "shuttle"     CIFAR-10's six, or <name>.csv
//   "x.npy,y.npy"                      features and labels
//   "data.npz"                         both in an archive
//   "text:PATH"                        a text, or the files of a folder joined, in windows
//   a folder                           four IDX files of MNIST's kind, else CIFAR-10's six
//   "-", a pipe or any other path      a CSV file, perhaps compressed by gzip; "-" is standard
//   input
Dataset open_dataset(const std::string& spec, const DataOptions& options = {});

}  // namespace tritgrad
