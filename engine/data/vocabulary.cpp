#include "engine/data/vocabulary.h"

#include <algorithm>
#include <utility>

#include "engine/check.h"
#include "engine/data/byte_pairs.h"
#include "engine/files/hash.h"
#include "engine/files/read_file.h"
#include "engine/text.h"

namespace tritgrad {

struct Vocabulary::Content {
  std::string model;
  PieceModel read;
  std::vector<std::string> bytes;       // of each token
  std::optional<BytePairs> pairs = {};  // none for bytes
};

namespace {

std::vector<std::string> bytes_of_all(const std::vector<Piece>& pieces) {
  std::vector<std::string> bytes;
  for (const Piece& piece : pieces) bytes.push_back(piece_bytes(piece));
  return bytes;
}

}  // namespace

Vocabulary Vocabulary::of_bytes() {
  auto content = std::make_shared<Content>();
  for (int byte = 0; byte < 256; ++byte) {
    content->read.pieces.push_back({byte_piece(byte), 0.0F, PieceType::kByte});
  }
  content->read.adds_space = false;
  content->bytes = bytes_of_all(content->read.pieces);
  return Vocabulary(std::move(content));
}

Vocabulary Vocabulary::of_pieces(std::string model, const std::string& name) {
  auto content = std::make_shared<Content>();
  content->read = parse_piece_model(model, name);
  content->model = std::move(model);
  content->bytes = bytes_of_all(content->read.pieces);
  content->pairs.emplace(content->read.pieces);
  return Vocabulary(std::move(content));
}

bool Vocabulary::is_bytes() const { return !content_->pairs.has_value(); }

std::int64_t Vocabulary::size() const {
  return static_cast<std::int64_t>(content_->read.pieces.size());
}

bool Vocabulary::adds_space() const { return content_->read.adds_space; }

const Piece& Vocabulary::piece(std::int64_t token) const {
  check(token >= 0 && token < size(), "token ", token, " is none of the vocabulary's, 0 to ",
        size() - 1, " expected");
  return content_->read.pieces[static_cast<std::size_t>(token)];
}

std::string_view Vocabulary::bytes_of(std::int64_t token) const {
  piece(token);
  return content_->bytes[static_cast<std::size_t>(token)];
}

std::optional<std::int32_t> Vocabulary::find(std::string_view piece) const {
  const std::vector<Piece>& pieces = content_->read.pieces;
  const auto found = std::find_if(pieces.begin(), pieces.end(),
                                  [&](const Piece& each) { return each.text == piece; });
  if (found == pieces.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - pieces.begin());
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
  return encode(text, adds_space());
}

std::vector<std::int32_t> Vocabulary::encode_more(std::string_view text) const {
  return encode(text, false);
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text, bool space_before) const {
  std::vector<std::int32_t> tokens;
  if (is_bytes()) {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  while (!text.empty()) {
    const std::size_t size = encoded_together(text);
    content_->pairs->encode(text.substr(0, size), space_before, tokens);
    text.remove_prefix(size);
    space_before = false;
  }
  return tokens;
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) text += bytes_of(token);
  if (adds_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

const std::string& Vocabulary::model() const { return content_->model; }

std::uint64_t Vocabulary::hash() const { return xxh3(std::as_bytes(std::span(model()))); }

Vocabulary open_vocabulary(const std::string& tokens) {
  constexpr std::string_view kFile = "sentencepiece:";
  if (tokens == "bytes") return Vocabulary::of_bytes();
  check(tokens.starts_with(kFile) && tokens.size() > kFile.size(), "tokens '", printable(tokens),
        "': bytes or sentencepiece:FILE expected, where FILE is a .model file of spm_train");
  const std::string path = tokens.substr(kFile.size());
  return Vocabulary::of_pieces(read_file(path), concat("tokenizer ", printable(path)));
}

}  // namespace tritgrad
