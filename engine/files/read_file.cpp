#include "engine/files/read_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>

#include "engine/check.h"

namespace tritgrad {
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

// Throws the system's reason for a file that could not be opened.
[[noreturn]] void fail_to_open(const std::string& sentence) {
  const int reason = errno;
  const std::string all = concat(sentence, std::strerror(reason), "; check the path");
  if (reason == ENOENT || reason == ENOTDIR) throw NotFound(all);
  fail(all);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Non-blocking, so that a pipe of this name is refused below and not waited for.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) fail_to_open(path.string() + ": cannot be opened for reading: ");
  struct stat status {};
  check(::fstat(file.value, &status) == 0, path.string(),
        ": cannot be read: ", std::strerror(errno));
  check(S_ISREG(status.st_mode), path.string(), ": is not a regular file; name a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses an empty range
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  check(address != MAP_FAILED, path.string(), ": cannot be mapped: ", std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw NotFound(concat("cannot read ", path, ": there is no such file; check the path"));
  }
  check(std::filesystem::is_regular_file(status), "cannot read ", path,
        ": it is not a regular file; give the path of a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "cannot read ", path, ": ", std::strerror(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  check(!error, "cannot read ", path, ": ", error.message());
  std::string bytes;
  try {
    bytes.resize(size);
  } catch (const std::exception&) {
    throw OutOfMemory(concat("cannot read ", path, ": there is no memory for its ", size,
                             " bytes; check that it is the file that was meant"));
  }
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  check(file.gcount() == static_cast<std::streamsize>(size), "cannot read ", path, ": only ",
        file.gcount(), " of ", size, " bytes could be read");
  return bytes;
}

bool is_pipe(const std::string& path) {
  if (path == "-") return true;
  std::error_code error;
  return std::filesystem::is_fifo(path, error);
}

std::string read_file_or_pipe(const std::string& path) {
  if (!is_pipe(path)) return read_file(path);
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "standard input" : path;
  check(!is_stdin || ::isatty(STDIN_FILENO) == 0,
        "standard input is a terminal; send data into it: COMMAND | tritgrad ..., or < FILE");
  const Descriptor file{is_stdin ? ::dup(STDIN_FILENO)
                                 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  check(file.value >= 0, "cannot read ", name, ": ", std::strerror(errno));
  constexpr std::size_t kPiece = 1 << 16;
  std::string bytes;
  for (;;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kPiece);
    const ssize_t count = ::read(file.value, bytes.data() + size, kPiece);
    const bool again = count < 0 && errno == EINTR;
    bytes.resize(size + (count > 0 ? static_cast<std::size_t>(count) : 0));
    check(count >= 0 || again, "cannot read ", name, ": ", std::strerror(errno));
    if (count == 0) return bytes;
  }
}

}  // namespace tritgrad
