// A file that is read piece by piece: what is large is copied from it to where it is wanted, and is
// in memory once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tritgrad {

class PiecewiseFile {
 public:
  // Throws Error with the path and the reason when it is not a readable regular file.
  explicit PiecewiseFile(const std::string& path);
  ~PiecewiseFile();
  PiecewiseFile(const PiecewiseFile&) = delete;
  PiecewiseFile& operator=(const PiecewiseFile&) = delete;

  // Returns the number of bytes that it had when it was opened.
  std::uint64_t size() const { return size_; }
  // Fills `out` with the bytes from `offset` on. Throws Error where the file has fewer of them.
  void read(std::uint64_t offset, std::span<std::uint8_t> out) const;

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace tritgrad
