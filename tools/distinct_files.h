// No output may replace what a command reads, or another of its outputs.
#pragma once

#include <string>
#include <vector>

namespace tritgrad {

struct NamedFile {
  std::string option;  // as users give it: "--save"
  std::string path;    // empty, "-", a device and what does not exist are no one's input
};

// Throws Error that names both options when two of them are one file, however it is written or
// linked.
void check_distinct_files(const std::vector<NamedFile>& inputs,
                          const std::vector<NamedFile>& outputs);

// The files behind --data: none for a name, a pair for X.npy,Y.npy.
std::vector<NamedFile> data_files(const std::string& data);

}  // namespace tritgrad
