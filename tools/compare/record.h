// The outcome of one comparison, from which its table, its page and its JSON are made.
#pragma once

#include <string>
#include <vector>

#include "models/training/run_result.h"
#include "tools/compare/tuning.h"

namespace tritgrad {

struct ComparisonRecord {
  std::string data;     // name of the data set
  std::string dataset;  // one line: name, size, how it was split
  std::string model;
  std::string command;          // repeats the comparison when typed into a shell
  std::string baseline;         // name of the recipe that the others are compared with
  std::vector<Tuning> tunings;  // by recipe, in the order of the runs; empty: rates as they are
  std::vector<RunResult> runs;  // recipes in their order, seeds 1, 2, ... of each

  // Returns the wall time of all runs, those of the tuning included, whenever they were made.
  double seconds() const;
};

// Returns {"tritgrad": version, "machine": ..., "comparisons": [...]}, which FORMATS.md describes.
std::string to_json(const std::vector<ComparisonRecord>& records, const std::string& machine);

}  // namespace tritgrad
