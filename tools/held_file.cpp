#include "tools/held_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/check.h"

namespace tritgrad {
namespace {

// Whether the name still leads to what was opened: whoever held it before may have removed it.
bool is_named(int file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// No leftover of a run is.
bool holds_something(int file) {
  struct stat opened {};
  return ::fstat(file, &opened) == 0 && opened.st_size > 0;
}

}  // namespace

HeldFile::HeldFile(const char* option, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty() || (fs::exists(status) && !fs::is_regular_file(status))) return;
  // By whatever links it is reached.
  lock_ = (fs::exists(status) ? fs::canonical(path) : fs::path(path)).string() + ".lock";
  for (;;) {
    file_ = ::open(lock_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    check(file_ >= 0, option, ": '", lock_, "' cannot be made: ", std::strerror(errno),
          "; it keeps other runs from writing to '", path, "'");
    if (holds_something(file_)) {
      ::close(file_);
      fail(option, ": '", lock_, "' is not empty, but would be deleted in the end, as it is to ",
           "keep other runs from writing to '", path, "'; name another file");
    }
    const bool is_free = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    if (is_free && is_named(file_, lock_)) return;
    ::close(file_);
    file_ = -1;
    check(is_free, option, ": another run is writing to '", path,
          "'; wait until it is over, or name another file");
  }
}

HeldFile::~HeldFile() {
  if (file_ < 0) return;
  ::unlink(lock_.c_str());  // while it is locked: nobody else's can carry the name yet
  ::close(file_);
}

}  // namespace tritgrad
