// The --log file: one JSON object per epoch and line.
#pragma once

#include <fstream>
#include <string>

#include "tools/run_result.h"

namespace tritgrad {

class RunLog {
 public:
  // Begins the file anew, or appends (a resumed run). An empty path logs nothing.
  RunLog(const std::string& path, bool append);

  void write(std::uint64_t seed, const EpochPoint& point);

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace tritgrad
