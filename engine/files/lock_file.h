// Files that keep other processes away for as long as this one works on something.
#pragma once

#include <filesystem>
#include <string>

namespace tritgrad {

// Whether `path` still leads to the open file: between open and lock somebody else may have renamed
// or removed it.
bool leads_to(const std::filesystem::path& path, int file);

// An empty file that is locked while this lives, and removed in the end. What a killed process left
// of one holds nothing.
class LockFile {
 public:
  // Throws Error: `busy` when another process has it; a sentence that names the path when it cannot
  // be made, or holds something and so is somebody's own.
  LockFile(const std::filesystem::path& path, const std::string& busy);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace tritgrad
