// Text to tokens by byte pairs, as SentencePiece does it: characters, of which the two neighbours
// that make the piece with the highest score become one, the first of equals, again and again until
// none make a piece. What is no piece then becomes bytes.
//
// Bytes that are no UTF-8, and a U+2581 of the text itself, which would come back as a space,
// become bytes too. So every text has tokens, and comes back from them byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/data/piece_model.h"

namespace tritgrad {

class BytePairs {
 public:
  // Keeps views of the pieces, which outlive it.
  explicit BytePairs(const std::vector<Piece>& pieces);

  // Appends the tokens of a text, and of a space before it.
  void encode(std::string_view text, bool space_before, std::vector<std::int32_t>& tokens) const;

 private:
  struct Work;
  std::size_t find_user_defined(std::string_view text, std::int32_t& token) const;
  void split(std::string_view text, Work& work) const;
  void offer(Work& work, std::size_t left, std::size_t right) const;
  void join(Work& work) const;

  struct Entry {
    std::int32_t token;
    float score;
  };
  std::unordered_map<std::string_view, Entry> pieces_;          // normal and user-defined ones
  std::unordered_map<std::string, std::int32_t> user_defined_;  // as they are in texts
  std::size_t longest_user_defined_ = 0;
  std::int32_t byte_tokens_[256] = {};
};

// Returns how many bytes at the beginning of a text are encoded together, at least 1 where there
// are any: a line with its end, and of lines longer than 64 KiB as much as goes up to a space, or
// else to a character. No piece of a trained tokenizer reaches across a line's end or into the
// space of another word, so the tokens are those of the whole text; longer lines would only take
// memory.
std::size_t encoded_together(std::string_view text);

}  // namespace tritgrad
