// The --log file: one JSON object per epoch and line.
#pragma once

#include <fstream>
#include <string>

#include "models/training/run_result.h"

namespace tritgrad {

class RunLog {
 public:
  // With the first epoch, or at the end, the file begins anew, with the epochs that a resumed run
  // has behind it: a run that fails before has not touched an older log. An empty path logs
  // nothing.
  RunLog(const std::string& path, std::uint64_t seed, const std::vector<EpochPoint>& done)
      : path_(path), seed_(seed), done_(done) {}

  void write(const EpochPoint& point);
  void end();

 private:
  void begin();
  void append(const EpochPoint& point);

  std::string path_;
  std::uint64_t seed_;
  std::vector<EpochPoint> done_;  // before this run
  std::ofstream out_;
};

}  // namespace tritgrad
