// Files that are replaced as a whole or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

// Writes a temporary file beside `path`; commit() makes it durable and puts it in place: fsync, rename,
// fsync of the folder. A reader, or a crash at any moment, sees the old file or the new one. Without
// commit() the temporary file is removed and the old file stays.
// Every failure throws Error with the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* action) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

// The whole file at once.
void replace_file(const std::string& path, std::string_view text);

}  // namespace tritgrad
