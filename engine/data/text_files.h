// A text as it lies on disk: the bytes of one file, or of all files of a folder, one after another.
//
// A folder is read with its subfolders. Names that begin with a dot are left out, as what editors
// and version control keep is no text; everything else must be a text. The files stand in the order
// of their paths below the folder, compared byte by byte (`LC_ALL=C sort`), and nothing is put
// between them: the text is what `cat` would make of them.
//
// Files are mapped, so a text takes no memory of our own and its pages can be dropped again. All
// functions may be called from several threads at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/files/read_file.h"

namespace tritgrad {

class TextFiles {
 public:
  TextFiles() = default;
  // Throws Error where nothing is there or can be read, where there are no bytes, and where a file
  // is no text: it holds a NUL byte, or too little of its first MiB is UTF-8.
  explicit TextFiles(const std::string& path);

  // Bytes of all files.
  std::int64_t size() const { return size_; }
  // XXH3 of all bytes: a folder has the hash of its files joined.
  std::uint64_t hash() const;

  // Calls use(bytes) for the parts of bytes [begin, begin + n), in order, which lie within the
  // text.
  template <typename Use>
  void for_each_part(std::int64_t begin, std::int64_t n, Use&& use) const {
    auto file = std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin();
    for (; n > 0; ++file) {
      const std::span<const std::byte> bytes = files_[static_cast<std::size_t>(file)].bytes();
      const std::int64_t end = ends_[static_cast<std::size_t>(file)];
      const std::int64_t count = std::min(n, end - begin);
      use(bytes.last(static_cast<std::size_t>(end - begin)).first(static_cast<std::size_t>(count)));
      begin += count;
      n -= count;
    }
  }

 private:
  void append(const std::string& path);

  std::vector<MappedFile> files_;   // none of them empty
  std::vector<std::int64_t> ends_;  // where in the text each one ends
  std::int64_t size_ = 0;
};

}  // namespace tritgrad
