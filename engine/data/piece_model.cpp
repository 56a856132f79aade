#include "engine/data/piece_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_set>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Fields of the messages with their kinds on the wire, as their tags have them.
constexpr std::uint32_t field_tag(std::uint32_t field, WireFormatLite::WireType kind) {
  return field << 3 | static_cast<std::uint32_t>(kind);
}
constexpr auto kLengthField = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr auto kNumberField = WireFormatLite::WIRETYPE_VARINT;

// Calls read(tag, stream) for each field of a message, which reads the field or skips it. Returns
// whether all of them could be read.
template <typename Read>
bool read_fields(std::string_view message, Read&& read) {
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (const std::uint32_t each = in.ReadTag()) {
    if (!read(each, in)) return false;
  }
  return in.ConsumedEntireMessage();
}

template <typename Number>
bool read_number(CodedInputStream& in, Number& number) {
  std::uint64_t value = 0;
  if (!in.ReadVarint64(&value)) return false;
  number = static_cast<Number>(value);
  return true;
}

// What of a model decides whether it can be used.
struct PieceSpec {
  std::uint64_t model_type = 1;
  bool space_after_word = false;
  std::string character_map;
  bool adds_space = true;
  bool removes_spaces = true;
  bool marks_spaces = true;
};

bool read_text_piece(std::string_view message, Piece& piece) {
  auto type = static_cast<std::uint64_t>(PieceType::kNormal);
  const bool done = read_fields(message, [&](std::uint32_t each, CodedInputStream& in) {
    std::uint32_t bits = 0;
    switch (each) {
      case field_tag(1, kLengthField):
        return WireFormatLite::ReadBytes(&in, &piece.text);
      case field_tag(2, WireFormatLite::WIRETYPE_FIXED32):
        if (!in.ReadLittleEndian32(&bits)) return false;
        piece.score = std::bit_cast<float>(bits);
        return true;
      case field_tag(3, kNumberField):
        return read_number(in, type);
      default:
        return WireFormatLite::SkipField(&in, each);
    }
  });
  piece.type = static_cast<PieceType>(type);
  return done && type >= 1 && type <= 6;
}

bool read_training(std::string_view message, PieceSpec& spec) {
  return read_fields(message, [&](std::uint32_t each, CodedInputStream& in) {
    switch (each) {
      case field_tag(3, kNumberField):
        return read_number(in, spec.model_type);
      case field_tag(24, kNumberField):
        return read_number(in, spec.space_after_word);
      default:
        return WireFormatLite::SkipField(&in, each);
    }
  });
}

bool read_normalizer(std::string_view message, PieceSpec& spec) {
  return read_fields(message, [&](std::uint32_t each, CodedInputStream& in) {
    switch (each) {
      case field_tag(2, kLengthField):
        return WireFormatLite::ReadBytes(&in, &spec.character_map);
      case field_tag(3, kNumberField):
        return read_number(in, spec.adds_space);
      case field_tag(4, kNumberField):
        return read_number(in, spec.removes_spaces);
      case field_tag(5, kNumberField):
        return read_number(in, spec.marks_spaces);
      default:
        return WireFormatLite::SkipField(&in, each);
    }
  });
}

bool read_model(std::string_view bytes, std::vector<Piece>& pieces, PieceSpec& spec) {
  std::string inner;
  return read_fields(bytes, [&](std::uint32_t each, CodedInputStream& in) {
    switch (each) {
      case field_tag(1, kLengthField):
        return WireFormatLite::ReadBytes(&in, &inner) &&
               read_text_piece(inner, pieces.emplace_back());
      case field_tag(2, kLengthField):
        return WireFormatLite::ReadBytes(&in, &inner) && read_training(inner, spec);
      case field_tag(3, kLengthField):
        return WireFormatLite::ReadBytes(&in, &inner) && read_normalizer(inner, spec);
      default:
        return WireFormatLite::SkipField(&in, each);
    }
  });
}

void check_spec(const PieceSpec& spec, const std::string& name) {
  constexpr std::uint64_t kBytePairs = 2;
  constexpr std::array<const char*, 5> kModelTypes = {"none", "unigram", "bpe", "word", "char"};
  const char* type = spec.model_type < kModelTypes.size()
                         ? kModelTypes[static_cast<std::size_t>(spec.model_type)]
                         : "none";
  check(spec.model_type == kBytePairs, name, ": its type is ", type,
        ", bpe expected; train one with: ", kPieceTraining);
  const bool keeps_text = spec.character_map.empty() && !spec.removes_spaces;
  check(keeps_text, name,
        ": it changes characters or spaces of a text, which would not come back from its tokens; "
        "train one with: ",
        kPieceTraining);
  check(spec.marks_spaces && !spec.space_after_word, name,
        ": spaces are not U+2581 before a word, as expected; train one with: ", kPieceTraining);
}

void check_pieces(const std::vector<Piece>& pieces, const std::string& name) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t token = 0; token < pieces.size(); ++token) {
    const Piece& piece = pieces[token];
    check(!piece.text.empty() && is_utf8(piece.text) && std::isfinite(piece.score), name,
          ": piece ", token,
          " is empty, is not UTF-8, or has no finite score; the file is damaged");
    check(seen.insert(piece.text).second, name, ": the piece '", printable(piece.text),
          "' is there twice; the file is damaged");
    check(piece.type != PieceType::kUnused, name, ": the piece '", printable(piece.text),
          "' is of type unused, which is not supported; train one with: ", kPieceTraining);
  }
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.type == PieceType::kByte ? 1 : 0;
  for (int byte = 0; byte < 256; ++byte) {
    check(bytes == 256 && seen.contains(byte_piece(byte)), name, ": ", bytes,
          " pieces of one byte found, <0x00> to <0xFF> expected, without which some texts have no "
          "tokens; train one with: ",
          kPieceTraining);
  }
}

}  // namespace

std::string byte_piece(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto value = static_cast<std::size_t>(byte);
  return std::string("<0x") + kDigits[value / 16] + kDigits[value % 16] + '>';
}

std::string piece_bytes(const Piece& piece) {
  if (piece.type == PieceType::kControl) return "";
  if (piece.type == PieceType::kUnknown) return "\xEF\xBF\xBD";
  if (piece.type == PieceType::kByte) {
    return std::string(1, static_cast<char>(std::stoi(piece.text.substr(3, 2), nullptr, 16)));
  }
  std::string bytes = piece.text;
  for (std::size_t at = 0; (at = bytes.find(kPieceSpace, at)) != std::string::npos; ++at) {
    bytes.replace(at, kPieceSpace.size(), " ");
  }
  return bytes;
}

PieceModel parse_piece_model(std::string_view bytes, const std::string& name) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // lengths are int in Protocol Buffers
  PieceModel model;
  PieceSpec spec;
  check(
      bytes.size() <= kMostBytes && read_model(bytes, model.pieces, spec) && !model.pieces.empty(),
      name,
      ": is damaged or no model of SentencePiece; give the .model file that spm_train writes");
  check_spec(spec, name);
  check_pieces(model.pieces, name);
  model.adds_space = spec.adds_space;
  return model;
}

}  // namespace tritgrad
