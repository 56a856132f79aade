// No output may replace what a command reads, or another of its outputs.
#pragma once

#include <string>
#include <vector>

namespace tritgrad {

struct NamedFile {
  std::string option;  // as users give it: "--save"
  std::string path;    // empty or "-": none
};

// Throws Error that names both options when an output is the file that an input is, or another
// output, however it is written or linked. Inputs that are no files, such as names of recipes, and
// devices are let through.
void check_distinct_files(const std::vector<NamedFile>& inputs,
                          const std::vector<NamedFile>& outputs);

// The files behind --data: none for a name, a pair for X.npy,Y.npy.
std::vector<NamedFile> data_files(const std::string& data);

}  // namespace tritgrad
