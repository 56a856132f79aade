// A tokenizer as SentencePiece's trainer writes it, put together by hand: fields of Protocol
// Buffers are a number of field and kind, and a number, or a length and bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/piece_model.h"

namespace tritgrad::test {

inline std::string proto_number(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

inline std::string proto_field(std::uint32_t field, std::uint64_t value) {
  return proto_number(field << 3) + proto_number(value);
}

inline std::string proto_field(std::uint32_t field, std::string_view bytes) {
  return proto_number(field << 3 | 2) + proto_number(bytes.size()) + std::string(bytes);
}

inline std::string proto_field(std::uint32_t field, float value) {
  std::string bytes = proto_number(field << 3 | 5);
  for (int i = 0; i < 4; ++i) {
    bytes += static_cast<char>(std::bit_cast<std::uint32_t>(value) >> (8 * i) & 255);
  }
  return bytes;
}

inline std::string proto_piece(const Piece& piece) {
  return proto_field(1, proto_field(1, std::string_view(piece.text)) + proto_field(2, piece.score) +
                            proto_field(3, static_cast<std::uint64_t>(piece.type)));
}

// What of a file tests change.
struct PieceFile {
  std::vector<Piece> pieces;
  std::string training = proto_field(3, std::uint64_t{2});  // of byte pairs
  std::string normalizer = proto_field(1, std::string_view("identity")) +
                           proto_field(4, std::uint64_t{0});  // removes no spaces

  std::string bytes() const {
    std::string all;
    for (const Piece& piece : pieces) all += proto_piece(piece);
    return all + proto_field(2, std::string_view(training)) +
           proto_field(3, std::string_view(normalizer));
  }
};

// Unknown, begin, end, the 256 bytes, and these, from token 259 on, each better than what follows.
inline PieceFile piece_file(const std::vector<std::string>& texts) {
  PieceFile file;
  file.pieces = {{"<unk>", 0.0F, PieceType::kUnknown},
                 {"<s>", 0.0F, PieceType::kControl},
                 {"</s>", 0.0F, PieceType::kControl}};
  for (int byte = 0; byte < 256; ++byte) {
    file.pieces.push_back({byte_piece(byte), 0.0F, PieceType::kByte});
  }
  float score = 0.0F;
  for (const std::string& text : texts) {
    file.pieces.push_back({text, score, PieceType::kNormal});
    score -= 1.0F;
  }
  return file;
}

}  // namespace tritgrad::test
