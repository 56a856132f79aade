#include "engine/files/piecewise_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/check.h"

namespace tritgrad {

PiecewiseFile::PiecewiseFile(const std::string& path) : path_(path) {
  // Non-blocking, so that a pipe of this name is refused below and not waited for.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int reason = errno;
  if (file_ < 0 && reason == ENOENT) {
    throw NotFound(concat("cannot read ", path, ": there is no such file; check the path"));
  }
  check(file_ >= 0, "cannot read ", path, ": ", std::strerror(reason));
  struct stat status {};
  const bool is_file = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file) ::close(file_);
  check(is_file, "cannot read ", path, ": it is not a regular file; give the path of a file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

PiecewiseFile::~PiecewiseFile() { ::close(file_); }

void PiecewiseFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  while (!out.empty()) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux reads less than 2^31 at once
    const ssize_t count =
        ::pread(file_, out.data(), std::min(out.size(), kMost), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, "cannot read ", path_, ": ", std::strerror(errno));
    check(count > 0, "cannot read ", path_, ": it ends at byte ", offset,
          "; try again when nothing writes to it");
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace tritgrad
