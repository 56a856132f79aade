// The bytes of whole files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

namespace tritgrad {

// Copies the bytes of a regular file. Throws Error with the path and the system's reason.
std::string read_file(const std::string& path);

// Whether `path` can be read once only: "-", which is standard input, or a pipe by name.
bool is_pipe(const std::string& path);

// Reads as read_file() does, and pipes too, until their other end closes them. Throws Error where
// standard input is a terminal.
std::string read_file_or_pipe(const std::string& path);

// The bytes of a file as read-only memory. Pages are read when touched and can be dropped again, so
// a checkpoint of many gigabytes costs no memory of our own. Sound for files that are replaced by
// rename (atomic_file.h): the mapping keeps the old file. A file cut short in place while it is
// mapped ends the process with SIGBUS.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error with the path and the reason when it is not a readable regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tritgrad
