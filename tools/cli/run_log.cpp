#include "tools/cli/run_log.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/check.h"

namespace tritgrad {

void RunLog::begin() {
  if (out_.is_open()) return;
  out_.open(path_, std::ios::trunc);
  check(out_.good(), "log file '", path_,
        "' cannot be written; check the folder and its permissions");
  for (const EpochPoint& point : done_) append(point);
}

void RunLog::write(const EpochPoint& point) {
  if (path_.empty()) return;
  begin();
  append(point);
}

void RunLog::end() {
  if (!path_.empty()) begin();
}

void RunLog::append(const EpochPoint& point) {
  nlohmann::ordered_json line{{"seed", seed_},
                              {"epoch", point.epoch},
                              {"train_loss", point.train_loss},
                              {"train_accuracy", point.train_accuracy}};
  line["val_accuracy"] = point.val_accuracy ? nlohmann::ordered_json(*point.val_accuracy) : nullptr;
  out_ << line.dump() << '\n' << std::flush;
  if (out_.good()) return;
  // An empty file would look like the log of a run that has just begun.
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path_, unknown) &&
      std::filesystem::file_size(path_, unknown) == 0) {
    std::filesystem::remove(path_, unknown);
  }
  fail("log file '", path_, "' cannot be written; is the disk full?");
}

}  // namespace tritgrad
