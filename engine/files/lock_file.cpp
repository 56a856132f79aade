#include "engine/files/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/check.h"

namespace tritgrad {
namespace {

bool holds_something(int file) {
  struct stat opened {};
  return ::fstat(file, &opened) == 0 && opened.st_size > 0;
}

}  // namespace

bool leads_to(const std::filesystem::path& path, int file) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

LockFile::LockFile(const std::filesystem::path& path, const std::string& busy)
    : path_(path.string()) {
  for (;;) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    check(file_ >= 0, "the lock file '", path_, "' cannot be opened: ", std::strerror(errno),
          "; mend that, or name a place elsewhere");
    if (holds_something(file_)) {
      ::close(file_);
      fail("the lock file '", path_,
           "' is not empty, and would be deleted in the end; move it, or ",
           "name a place elsewhere");
    }
    // Where the file system knows no locks, nobody is kept away.
    const bool is_busy = ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_busy && leads_to(path_, file_)) return;
    ::close(file_);
    if (is_busy) fail(busy);
  }
}

LockFile::~LockFile() {
  ::unlink(path_.c_str());  // while it is locked: nobody else's can carry the name yet
  ::close(file_);
}

}  // namespace tritgrad
