// No output may replace what a command reads, or another of its outputs.
#pragma once

#include <string>
#include <vector>

namespace tritgrad {

struct NamedFile {
  std::string option;     // as users give it: "--save"
  std::string path;       // empty or "-": none
  bool in_place = false;  // an output that is not written beside its place first (AtomicFile)
};

// Throws Error that names both options when an output is a file that is read, lies in a folder that
// is read, or is another output, however it is written or linked. What an output is written to
// before it is whole, OUTPUT.tmp, and what other runs are kept away by, OUTPUT.lock, count as well.
// Inputs that do not exist, and devices, are let through.
void check_distinct_files(const std::vector<NamedFile>& inputs,
                          const std::vector<NamedFile>& outputs);

// What --data reads: none for a data set of the library, a folder for a fetched one.
std::vector<NamedFile> data_files(const std::string& data, const std::string& cache_folder);

// What is read for a recipe: none for a built-in one.
std::vector<NamedFile> recipe_files(const std::string& option, const std::string& recipe);

}  // namespace tritgrad
