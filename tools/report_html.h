// A comparison of recipes as one HTML page that needs nothing but itself: no network, no scripts.
#pragma once

#include <string>
#include <vector>

#include "tools/run_result.h"

namespace tritgrad {

struct Report {
  std::string title;
  std::string command;  // repeats the comparison when typed into a shell
  std::string machine;  // one line: processor, threads, instruction set, version
  std::string dataset;  // one line: name, sizes of the splits, hash
  std::vector<RunResult> runs;
  std::string baseline = "master";
};

std::string render_report(const Report& report);
// Throws when the file cannot be written.
void write_report(const std::string& path, const Report& report);

}  // namespace tritgrad
