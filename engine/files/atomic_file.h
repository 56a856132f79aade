// Replacing a file so that a reader, after a crash at any moment, finds the old bytes or the new
// ones, whole: write NAME.tritgrad-tmp in the same folder, fsync it, rename it over NAME, fsync the
// folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "engine/check.h"

namespace tritgrad {

// The refusal of a file that has another writer. It is an error of its own because whoever would
// write the same bytes may leave it to the other.
class FileIsBusy : public Error {
 public:
  using Error::Error;
};

// The system calls that can fail on a full or dying disk, with POSIX semantics (-1 and errno).
// The default is the system's; tests put faults in their place.
struct FileCalls {
  FileCalls();
  std::function<std::ptrdiff_t(int file, const void* data, std::size_t bytes)> write;
  std::function<int(int file)> fsync;
  std::function<int(const char* from, const char* to)> rename;
};

// The one writer of one file, by whatever links it is reached. To be made before the work whose
// result it takes: it refuses every path that could not be replaced, and keeps other writers, of
// this process too, away for as long as it lives. Until commit() returns, the file at `path` is
// untouched; any failure throws Error with the path and the system's reason, and the temporary file
// is removed. The remains of one that a killed process left are overwritten. A file that is
// replaced keeps its permission bits; a symbolic link stays, and the file that it names is
// replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path, FileCalls calls = {});
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);

  // Does the part of commit() that a full disk can fail, while the file is still as it was: for
  // several files that are to be replaced together.
  void sync();

  // If only the last step, the fsync of the folder, fails, the new file is already in place, whole,
  // but may not survive a power cut: the Error says so.
  void commit();

  // Does what commit() does, but this stays the file's one writer, and may write it anew.
  void commit_and_hold();

  const std::filesystem::path& path() const { return path_; }

 private:
  void open_temporary();
  void replace();
  [[noreturn]] void fail_with_errno(const char* action) const;
  void close_all() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileCalls calls_;
  int folder_ = -1;
  int file_ = -1;
  bool owns_temporary_ = false;
  bool synced_ = false;
};

// Replaces the whole content at once.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  const FileCalls& calls = {});

}  // namespace tritgrad
