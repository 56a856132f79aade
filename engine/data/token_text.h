// A text as a language model reads it: a row of token numbers, each below vocabulary().
//
// Tokens are the bytes of the text. They are read where the files are mapped (text_files.h). All
// functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/text_files.h"

namespace tritgrad {

class TokenText {
 public:
  // Tokens.
  std::int64_t size() const { return files_.size(); }
  // Different tokens that there may be: 256 for bytes.
  std::int64_t vocabulary() const { return 256; }
  // Bytes of the text, and of tokens [begin, begin + n) alone.
  std::int64_t byte_count() const { return files_.size(); }
  std::int64_t byte_count(std::int64_t begin, std::int64_t n) const;
  // Writes tokens [begin, begin + n) to `out`. Throws Error where they are not all in the text.
  void read(std::int64_t begin, std::int64_t n, std::int32_t* out) const;
  // The same for the same tokens, however the text is cut into files. Reads all of them.
  std::uint64_t hash() const { return files_.hash(); }

 private:
  friend TokenText open_bytes(const std::string& path);

  void check_range(std::int64_t begin, std::int64_t n) const;

  TextFiles files_;
};

// Opens a file or a folder, of which every byte is a token. Throws what TextFiles throws.
TokenText open_bytes(const std::string& path);

}  // namespace tritgrad
