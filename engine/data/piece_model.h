// The tokenizer that SentencePiece's trainer writes (a .model file): pieces of text, each with the
// score that says which of two neighbours become one first. It is the Protocol Buffers message
// ModelProto of github.com/google/sentencepiece, src/sentencepiece_model.proto.
//
// It is read here and not by Debian's libsentencepiece, because that library carries a Protocol
// Buffers of its own, version 3.14, whose symbols are visible: in one process with the libprotobuf
// that ONNX needs, its start aborts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

// Numbered as in ModelProto and in GGUF.
enum class PieceType {
  kNormal = 1,
  kUnknown = 2,      // stands for what no piece says; never made where bytes are pieces
  kControl = 3,      // no text: begin, end, padding
  kUserDefined = 4,  // found in a text as it is, before anything is joined
  kUnused = 5,
  kByte = 6,  // one byte, "<0x41>", of what no other piece says
};

struct Piece {
  std::string text;  // UTF-8, in which U+2581 stands for a space
  float score = 0.0F;
  PieceType type = PieceType::kNormal;
};

struct PieceModel {
  std::vector<Piece> pieces;  // by token
  bool adds_space = true;     // one is put before a text, so that its first word is like others
};

// What stands for a space in pieces: U+2581.
inline constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

// The arguments with which spm_train makes what parse_piece_model() takes.
inline constexpr const char* kPieceTraining =
    "spm_train --model_type=bpe --byte_fallback=true --normalization_rule_name=identity "
    "--remove_extra_whitespaces=false --max_sentence_length=1000000";

// Throws Error, with `name` in front, for what is damaged or none, and for a tokenizer that is not
// of byte pairs or from whose tokens some texts would not come back, byte for byte.
PieceModel parse_piece_model(std::string_view bytes, const std::string& name);

// Returns the text of a piece of one byte.
std::string byte_piece(int byte);

// Returns what a piece stands for in a text: nothing for control pieces, U+FFFD for the unknown
// one.
std::string piece_bytes(const Piece& piece);

}  // namespace tritgrad
