// A file that one process at a time writes to, over and over: a run's checkpoint, its log.
#pragma once

#include <string>

namespace tritgrad {

// While it lives, no other process can hold the same file. It is PATH.lock that is locked, as the
// file itself is replaced at every save; that is removed in the end, and where a process was
// killed what is left of it holds nothing.
class HeldFile {
 public:
  // Holds nothing for an empty path, or one that names a pipe or a device. Throws Error that begins
  // with `option` when another process holds the file.
  HeldFile(const char* option, const std::string& path);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

 private:
  std::string lock_;
  int file_ = -1;
};

}  // namespace tritgrad
