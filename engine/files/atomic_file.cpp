#include "engine/files/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/check.h"
#include "engine/files/file_size_signal.h"

namespace tritgrad {
namespace {

// Linux transfers at most 2^31 - 4096 bytes in one call.
constexpr std::size_t kLargestWrite = std::size_t{1} << 30;

constexpr mode_t kNewFileMode = 0666;

// The permission bits of a file; nothing if there is none.
std::optional<mode_t> mode_of(const std::filesystem::path& path) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return std::nullopt;
  return old.st_mode & mode_t{0777};
}

// Returns the file that the bytes replace: a link is followed, so that it stays one. Renaming over
// anything but a regular file would replace a device or a pipe.
std::filesystem::path regular_target(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    check(!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)), path.string(),
          ": is a link to a file that does not exist; nothing was written, name that file");
    return path;
  }
  check(std::filesystem::is_regular_file(status), path.string(),
        ": is not a regular file; nothing was written, name a file");
  // Replacing takes no permission of the file's own, but whoever took that away wants to keep it.
  check(::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0, path.string(),
        ": is write-protected (", std::strerror(EACCES),
        "); nothing was written, name another file");
  return std::filesystem::is_symlink(path) ? std::filesystem::canonical(path) : path;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Whether `path` still leads to the open file: between open and lock somebody else may have renamed
// or removed it.
bool leads_to(const std::filesystem::path& path, int file) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

FileCalls::FileCalls() : write(::write), fsync(::fsync), rename(::rename) {}

AtomicFile::AtomicFile(const std::filesystem::path& path, FileCalls calls)
    : calls_(std::move(calls)) {
  check(path.has_filename(), "'", path.string(), "': names no file to write");
  path_ = temporary_ = regular_target(path);
  temporary_ += ".tritgrad-tmp";
  try {
    folder_ = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0 && errno == ENOENT) {
      throw NotFound(concat(path_.string(), ": there is no folder '", folder_of(path_).string(),
                            "' (", std::strerror(ENOENT), "); make it first"));
    }
    if (folder_ < 0) fail_with_errno("cannot be written, its folder cannot be opened");
    open_temporary();
  } catch (...) {
    close_all();
    throw;
  }
}

// The lock tells a living writer from the leftovers of a killed one. Between open and lock, the
// other writer may have renamed or removed the file we opened; then the name no longer leads to it.
// On a file system without locks nobody is kept away.
void AtomicFile::open_temporary() {
  std::error_code error;
  const auto remains = std::filesystem::symlink_status(temporary_, error);
  check(!std::filesystem::exists(remains) || std::filesystem::is_regular_file(remains),
        path_.string(), ": cannot be written, '", temporary_.string(),
        "' lies where its temporary file belongs and is no regular file; delete that, or name "
        "another file");
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                 mode_of(path_).value_or(kNewFileMode));
  check(file_ >= 0 || errno != ENAMETOOLONG, path_.string(),
        ": cannot be written: File name too long, as '.tritgrad-tmp' is added for the temporary "
        "file; choose a shorter one");
  if (file_ < 0) fail_with_errno("cannot be written, no temporary file beside it");
  const bool busy = ::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (busy || !leads_to(temporary_, file_)) {
    throw FileIsBusy(
        concat(path_.string(),
               ": another run, or another output of this one, is writing to this file (it holds ",
               temporary_.string(), "); wait until it is over, or name another file"));
  }
  owns_temporary_ = true;
  synced_ = false;
  if (::ftruncate(file_, 0) != 0) fail_with_errno("cannot be written");
  // open() gave its mode, less the umask, to a new file alone, not to such leftovers.
  const std::optional<mode_t> mode = mode_of(path_);
  if (mode && ::fchmod(file_, *mode) != 0) fail_with_errno("cannot be given its permissions");
}

AtomicFile::~AtomicFile() { close_all(); }

void AtomicFile::close_all() noexcept {
  // Removed while still locked: nobody else's file can carry the name yet.
  if (owns_temporary_) ::unlink(temporary_.c_str());
  if (file_ >= 0) ::close(file_);
  if (folder_ >= 0) ::close(folder_);
  owns_temporary_ = false;
  file_ = folder_ = -1;
}

void AtomicFile::fail_with_errno(const char* action) const {
  fail(path_.string(), ": ", action, ": ", std::strerror(errno),
       "; what was there before is as it was");
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(owns_temporary_, path_.string(), ": written to after its commit");
  synced_ = false;
  const HeldFileSizeSignal held;
  while (!bytes.empty()) {
    const std::size_t wanted = std::min(bytes.size(), kLargestWrite);
    const std::ptrdiff_t written = calls_.write(file_, bytes.data(), wanted);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_errno("cannot be written");
    check(written > 0, path_.string(), ": cannot be written: the system took 0 of ", wanted,
          " bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::sync() {
  if (calls_.fsync(file_) != 0)
    fail_with_errno("cannot be written, its bytes did not reach the disk");
  synced_ = true;
}

void AtomicFile::replace() {
  check(owns_temporary_, path_.string(), ": committed twice");
  if (!synced_) sync();
  if (calls_.rename(temporary_.c_str(), path_.c_str()) != 0) fail_with_errno("cannot be replaced");
  owns_temporary_ = false;
  if (calls_.fsync(folder_) != 0) {
    fail(path_.string(),
         ": is replaced, but may not survive a power cut, its folder was not synced: ",
         std::strerror(errno));
  }
}

void AtomicFile::commit() {
  replace();
  close_all();
}

void AtomicFile::commit_and_hold() {
  replace();
  ::close(file_);
  open_temporary();
}

void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  const FileCalls& calls) {
  AtomicFile file(path, calls);
  file.write(bytes);
  file.commit();
}

}  // namespace tritgrad
