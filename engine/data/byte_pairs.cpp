#include "engine/data/byte_pairs.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::size_t kNoSymbol = SIZE_MAX;
constexpr std::size_t kMostTogether = std::size_t{1} << 16;

// Of a symbol that may be joined, of one that becomes bytes, else the token of a user's piece.
constexpr std::int32_t kOpenSymbol = -1;
constexpr std::int32_t kByteSymbol = -2;

// Returns the bytes of the character at the beginning of a text, or 0 where there is none.
std::size_t character_size(std::string_view text) {
  const int ones = std::countl_one(static_cast<unsigned char>(text.front()));
  const std::size_t size = ones == 0 ? 1 : static_cast<std::size_t>(ones);
  return size <= text.size() && is_utf8(text.substr(0, size)) ? size : 0;
}

}  // namespace

struct BytePairs::Work {
  // A part of the text, between its neighbours. Joined to the one before, it becomes empty.
  struct Symbol {
    std::size_t left, right;
    std::string_view text;
    std::int32_t token;
  };

  struct Pair {
    float score;
    std::size_t left, right;
    std::size_t size;  // of both texts, when they were offered
  };

  struct IsWorse {
    bool operator()(const Pair& a, const Pair& b) const {
      return a.score < b.score || (a.score == b.score && a.left > b.left);
    }
  };

  std::string text;  // with U+2581 for spaces; never moved, as symbols are views into it
  std::vector<Symbol> symbols;
  std::priority_queue<Pair, std::vector<Pair>, IsWorse> pairs;

  void add(std::string_view part, std::int32_t token) {
    const std::size_t begin = text.size(), index = symbols.size();
    text += part;
    symbols.push_back({index == 0 ? kNoSymbol : index - 1, index + 1,
                       std::string_view(text).substr(begin), token});
  }
};

BytePairs::BytePairs(const std::vector<Piece>& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const auto token = static_cast<std::int32_t>(i);
    if (piece.type == PieceType::kNormal || piece.type == PieceType::kUserDefined) {
      pieces_[piece.text] = {token, piece.score};
    }
    if (piece.type == PieceType::kByte) {
      byte_tokens_[static_cast<unsigned char>(piece_bytes(piece)[0])] = token;
    }
    // One with a space of its own is never found, as texts have U+2581 there.
    if (piece.type == PieceType::kUserDefined && piece.text.find(' ') == std::string::npos) {
      const std::string text = piece_bytes(piece);
      longest_user_defined_ = std::max(longest_user_defined_, text.size());
      user_defined_[text] = token;
    }
  }
}

// Returns the size of the longest piece of the user's with which a text begins, or 0.
std::size_t BytePairs::find_user_defined(std::string_view text, std::int32_t& token) const {
  for (std::size_t size = std::min(longest_user_defined_, text.size()); size > 0; --size) {
    const auto found = user_defined_.find(std::string(text.substr(0, size)));
    if (found == user_defined_.end()) continue;
    token = found->second;
    return size;
  }
  return 0;
}

void BytePairs::split(std::string_view text, Work& work) const {
  while (!text.empty()) {
    std::int32_t token = kOpenSymbol;
    std::size_t size = find_user_defined(text, token);
    if (size == 0) size = character_size(text);
    if (size == 0) {
      size = 1;
      token = kByteSymbol;
    }
    const std::string_view part = text.substr(0, size);
    if (part == kPieceSpace) token = kByteSymbol;
    work.add(part == " " && token == kOpenSymbol ? kPieceSpace : part, token);
    text.remove_prefix(size);
  }
  work.symbols.back().right = kNoSymbol;
}

// Puts a pair forward where both may be joined and make a piece.
void BytePairs::offer(Work& work, std::size_t left, std::size_t right) const {
  if (left == kNoSymbol || right == kNoSymbol) return;
  const Work::Symbol& a = work.symbols[left];
  const Work::Symbol& b = work.symbols[right];
  if (a.token != kOpenSymbol || b.token != kOpenSymbol) return;
  const std::size_t size = a.text.size() + b.text.size();
  const auto found = pieces_.find(std::string_view(a.text.data(), size));
  if (found != pieces_.end()) work.pairs.push({found->second.score, left, right, size});
}

void BytePairs::join(Work& work) const {
  for (std::size_t i = 1; i < work.symbols.size(); ++i) offer(work, i - 1, i);
  while (!work.pairs.empty()) {
    const Work::Pair pair = work.pairs.top();
    work.pairs.pop();
    Work::Symbol& a = work.symbols[pair.left];
    Work::Symbol& b = work.symbols[pair.right];
    // One of the two may have been joined to another one meanwhile.
    if (a.text.empty() || b.text.empty() || a.text.size() + b.text.size() != pair.size) continue;
    a.text = {a.text.data(), pair.size};
    a.right = b.right;
    if (b.right != kNoSymbol) work.symbols[b.right].left = pair.left;
    b.text = {};
    offer(work, a.left, pair.left);
    offer(work, pair.left, a.right);
  }
}

void BytePairs::encode(std::string_view text, bool space_before,
                       std::vector<std::int32_t>& tokens) const {
  if (text.empty()) return;
  Work work;
  work.text.reserve((text.size() + 1) * kPieceSpace.size());
  work.symbols.reserve(text.size() + 1);
  if (space_before) work.add(kPieceSpace, kOpenSymbol);
  split(text, work);
  join(work);
  for (std::size_t i = 0; i != kNoSymbol; i = work.symbols[i].right) {
    const Work::Symbol& symbol = work.symbols[i];
    const auto found = symbol.token == kOpenSymbol ? pieces_.find(symbol.text) : pieces_.end();
    if (symbol.token >= 0) {
      tokens.push_back(symbol.token);
    } else if (found != pieces_.end()) {
      tokens.push_back(found->second.token);
    } else {
      const bool is_space = symbol.token == kOpenSymbol && symbol.text == kPieceSpace;
      for (const char byte : is_space ? " " : symbol.text) {
        tokens.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
      }
    }
  }
}

std::size_t encoded_together(std::string_view text) {
  const std::size_t end = text.substr(0, kMostTogether).find('\n');
  if (end != std::string_view::npos) return end + 1;
  if (text.size() <= kMostTogether) return text.size();
  const std::size_t space = text.rfind(' ', kMostTogether);
  if (space != std::string_view::npos && space > 0) return space;
  constexpr std::size_t kMostContinued = 3;  // bytes of a character behind its first one
  for (std::size_t size = kMostTogether; size >= kMostTogether - kMostContinued; --size) {
    if ((static_cast<unsigned char>(text[size]) & 0xC0) != 0x80) return size;
  }
  return kMostTogether;
}

}  // namespace tritgrad
