#include "tools/run_log.h"

#include <nlohmann/json.hpp>

#include "engine/check.h"

namespace tritgrad {

RunLog::RunLog(const std::string& path, bool append) : path_(path) {
  if (path_.empty()) return;
  out_.open(path_, append ? std::ios::app : std::ios::trunc);
  check(out_.good(), "log file '", path_,
        "' cannot be written; check the folder and its permissions");
}

void RunLog::write(std::uint64_t seed, const EpochPoint& point) {
  if (path_.empty()) return;
  nlohmann::ordered_json line{{"seed", seed},
                              {"epoch", point.epoch},
                              {"train_loss", point.train_loss},
                              {"train_accuracy", point.train_accuracy}};
  line["val_accuracy"] = point.val_accuracy ? nlohmann::ordered_json(*point.val_accuracy) : nullptr;
  out_ << line.dump() << '\n' << std::flush;
  check(out_.good(), "log file '", path_, "' cannot be written any more; is the disk full?");
}

}  // namespace tritgrad
