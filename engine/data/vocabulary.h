// What the tokens of a language model stand for: the 256 bytes, or the pieces of a tokenizer that
// SentencePiece has trained (piece_model.h).
//
// Every text has tokens and comes back from them, byte for byte. A vocabulary is a reference to
// what never changes: copies are cheap, and all functions may be called from several threads at
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/piece_model.h"

namespace tritgrad {

class Vocabulary {
 public:
  // The 256 bytes, in order.
  static Vocabulary of_bytes();
  // The pieces of `model`, the contents of a .model file. Throws what parse_piece_model() throws.
  static Vocabulary of_pieces(std::string model, const std::string& name);

  bool is_bytes() const;
  std::int64_t size() const;
  // Whether encode() puts a space before a text, of which its first token knows, and decode() takes
  // it away again.
  bool adds_space() const;

  // Token numbers go from 0 to size() - 1; others throw Error.
  const Piece& piece(std::int64_t token) const;
  // What a token adds to a text. One by one they make any text; parts of it that end within a
  // character are no UTF-8 yet.
  std::string_view bytes_of(std::int64_t token) const;
  // Returns the token of a piece, as "</s>" is one.
  std::optional<std::int32_t> find(std::string_view piece) const;

  // Returns the tokens of a text from its beginning, and of one that goes on with another.
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::vector<std::int32_t> encode_more(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> tokens) const;

  // The contents of the .model file, which of_pieces() takes; empty for bytes.
  const std::string& model() const;
  // XXH3 of model().
  std::uint64_t hash() const;

 private:
  struct Content;
  explicit Vocabulary(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  std::vector<std::int32_t> encode(std::string_view text, bool space_before) const;

  std::shared_ptr<const Content> content_;
};

// Opens what `tokens` says: "bytes", or "sentencepiece:FILE" with the .model file of a tokenizer.
// Throws Error for other texts, and with the path of a file that of_pieces() does not take.
Vocabulary open_vocabulary(const std::string& tokens);

}  // namespace tritgrad
