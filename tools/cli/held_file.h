// A file that one process at a time writes to, over and over: a run's checkpoint, its log.
#pragma once

#include <optional>
#include <string>

#include "engine/files/lock_file.h"

namespace tritgrad {

// While it lives, no other process can hold the same file. It is PATH.lock that is locked, as the
// file itself is replaced at every save.
class HeldFile {
 public:
  // Holds nothing for an empty path, or one that names a pipe or a device. Throws Error that begins
  // with `option` when another process holds the file, or as LockFile.
  HeldFile(const char* option, const std::string& path);

 private:
  std::optional<LockFile> lock_;
};

}  // namespace tritgrad
