#include "tools/cli/held_file.h"

#include <filesystem>

#include "engine/check.h"

namespace tritgrad {

HeldFile::HeldFile(const char* option, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty() || (fs::exists(status) && !fs::is_regular_file(status))) return;
  // By whatever links it is reached.
  fs::path lock = fs::exists(status) ? fs::canonical(path) : fs::path(path);
  lock += ".lock";
  lock_.emplace(lock, concat(option, ": another run is writing to '", path,
                             "'; wait until it is over, or name another file"));
}

}  // namespace tritgrad
