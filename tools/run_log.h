// The --log file: one JSON object per epoch and line.
#pragma once

#include <fstream>
#include <string>

#include "tools/run_result.h"

namespace tritgrad {

class RunLog {
 public:
  // Begins the file anew with the epochs that a resumed run has behind it. An empty path logs
  // nothing.
  RunLog(const std::string& path, std::uint64_t seed, const std::vector<EpochPoint>& done);

  void write(const EpochPoint& point);

 private:
  std::string path_;
  std::uint64_t seed_;
  std::ofstream out_;
};

}  // namespace tritgrad
