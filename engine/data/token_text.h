// A text as a language model reads it: a row of token numbers, each below vocabulary().
//
// Tokens are the bytes of the text, which are read where its files are mapped (text_files.h), or
// pieces, made once and kept: two bytes each, or four where there are more than 65,536 pieces. All
// functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/text_files.h"
#include "engine/data/vocabulary.h"
#include "engine/memory/buffer.h"

namespace tritgrad {

class TokenText {
 public:
  // Tokens.
  std::int64_t size() const { return size_; }
  const Vocabulary& tokenizer() const { return tokenizer_; }
  // Different tokens that there may be: 256 for bytes.
  std::int64_t vocabulary() const { return tokenizer_.size(); }
  // Bytes of the text, and of tokens [begin, begin + n) alone.
  std::int64_t byte_count() const { return byte_count_; }
  std::int64_t byte_count(std::int64_t begin, std::int64_t n) const;
  // Writes tokens [begin, begin + n) to `out`. Throws Error where they are not all in the text.
  void read(std::int64_t begin, std::int64_t n, std::int32_t* out) const;
  // The same for the same tokens, wherever they came from. Reads all of them.
  std::uint64_t hash() const;

 private:
  friend TokenText open_tokens(const std::string& path, const Vocabulary& tokenizer);

  explicit TokenText(const Vocabulary& tokenizer) : tokenizer_(tokenizer) {}
  void tokenize(const TextFiles& files);
  bool is_wide() const { return vocabulary() > 65536; }
  void check_range(std::int64_t begin, std::int64_t n) const;

  Vocabulary tokenizer_;
  std::int64_t size_ = 0;
  std::int64_t byte_count_ = 0;
  TextFiles files_;  // of bytes, else none
  Buffer tokens_;    // of pieces: uint16, or int32 where is_wide()
};

// Opens a file or a folder. Throws what TextFiles throws.
TokenText open_tokens(const std::string& path, const Vocabulary& tokenizer);
// With every byte a token.
TokenText open_bytes(const std::string& path);

}  // namespace tritgrad
