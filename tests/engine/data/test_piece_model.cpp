#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine/data/piece_model.h"
#include "tests/support/piece_file.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_piece_model {
namespace {

std::string refused(const PieceFile& file) {
  return refusal([&] { parse_piece_model(file.bytes(), "tokenizer t"); });
}

TEST_CASE("piece model: pieces have the texts, scores and types of the file") {
  PieceFile file = piece_file({"ab", "\xE2\x96\x81", "\xC3\xA4"});
  file.pieces.push_back({"<mark>", 0.0F, PieceType::kUserDefined});
  const PieceModel model = parse_piece_model(file.bytes(), "t");
  REQUIRE(model.pieces.size() == 263);
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    CHECK(model.pieces[i].text == file.pieces[i].text);
    CHECK(model.pieces[i].score == file.pieces[i].score);
    CHECK(model.pieces[i].type == file.pieces[i].type);
  }
  CHECK(model.adds_space);
  file.normalizer += proto_field(3, std::uint64_t{0});
  CHECK_FALSE(parse_piece_model(file.bytes(), "t").adds_space);
}

TEST_CASE("piece model: what a piece stands for in a text") {
  CHECK(piece_bytes({"<0x00>", 0.0F, PieceType::kByte}) == std::string(1, '\0'));
  CHECK(piece_bytes({"<0xFA>", 0.0F, PieceType::kByte}) == "\xFA");
  CHECK(piece_bytes({"<0xFA>", 0.0F, PieceType::kNormal}) == "<0xFA>");
  CHECK(piece_bytes({"\xE2\x96\x81to\xE2\x96\x81", 0.0F, PieceType::kNormal}) == " to ");
  CHECK(piece_bytes({"</s>", 0.0F, PieceType::kControl}).empty());
  CHECK(piece_bytes({"<unk>", 0.0F, PieceType::kUnknown}) == "\xEF\xBF\xBD");
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(piece_bytes({byte_piece(byte), 0.0F, PieceType::kByte}) ==
          std::string(1, static_cast<char>(byte)));
  }
}

TEST_CASE("piece model: a tokenizer from which texts do not come back is refused") {
  const PieceFile good = piece_file({"ab"});
  CHECK(refused(good).empty());
  const auto with_training = [&](const std::string& field) {
    PieceFile file = good;
    file.training += field;
    return refused(file);
  };
  const auto with_normalizer = [&](const std::string& field) {
    PieceFile file = good;
    file.normalizer += field;
    return refused(file);
  };
  const std::string remedy = "train one with: spm_train --model_type=bpe --byte_fallback=true";
  for (const auto& said : {with_training(proto_field(3, std::uint64_t{1})),
                           with_training(proto_field(24, std::uint64_t{1})),
                           with_normalizer(proto_field(2, std::string_view("map"))),
                           with_normalizer(proto_field(4, std::uint64_t{1})),
                           with_normalizer(proto_field(5, std::uint64_t{0}))}) {
    CHECK(said.starts_with("tokenizer t: "));
    CHECK(contains(said, remedy));
  }
  CHECK(contains(with_training(proto_field(3, std::uint64_t{1})), "its type is unigram, bpe exp"));
  CHECK(contains(with_training(proto_field(3, ~std::uint64_t{0})), "its type is none"));
  PieceFile file = good;
  file.training.clear();  // SentencePiece's default
  CHECK(contains(refused(file), "its type is unigram"));
  file = good;
  file.normalizer.clear();  // which removes spaces
  CHECK(contains(refused(file), "changes characters or spaces"));
}

TEST_CASE("piece model: all 256 bytes must be pieces, each once") {
  for (const std::size_t missing : {3U, 100U, 258U}) {
    PieceFile file = piece_file({"ab"});
    file.pieces.erase(file.pieces.begin() + static_cast<std::ptrdiff_t>(missing));
    CHECK(contains(refused(file), "255 pieces of one byte found, <0x00> to <0xFF> expected"));
    file = piece_file({"ab"});
    file.pieces[missing].text = "<0xZZ>";
    CHECK(contains(refused(file), "256 pieces of one byte found, <0x00> to <0xFF> expected"));
    file = piece_file({"ab"});
    file.pieces[missing].type = PieceType::kNormal;
    CHECK(contains(refused(file), "255 pieces of one byte found"));
  }
}

TEST_CASE("piece model: damaged pieces are refused") {
  const auto with = [](const Piece& piece) {
    PieceFile file = piece_file({"ab"});
    file.pieces.push_back(piece);
    return refused(file);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(contains(with({"", 0.0F, PieceType::kNormal}), "piece 260 is empty"));
  CHECK(contains(with({"\xC3", 0.0F, PieceType::kNormal}), "piece 260 is empty, is not UTF-8"));
  CHECK(contains(with({"x", NAN, PieceType::kNormal}), "has no finite score"));
  CHECK(contains(with({"x", infinity, PieceType::kNormal}), "has no finite score"));
  CHECK(contains(with({"ab", 0.0F, PieceType::kNormal}), "the piece 'ab' is there twice"));
  CHECK(contains(with({"x", 0.0F, PieceType::kUnused}), "'x' is of type unused"));
  CHECK(contains(with({"x", 0.0F, static_cast<PieceType>(0)}), "is damaged or no model"));
  CHECK(contains(with({"x", 0.0F, static_cast<PieceType>(7)}), "is damaged or no model"));
}

TEST_CASE("piece model: other files, and every truncation, are refused") {
  for (const char* bytes : {"", "garbage", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
                            "\x0A\xFF\xFF\xFF\xFF\x07x"}) {
    CHECK(refusal([&] { parse_piece_model(bytes, "tokenizer t"); }) ==
          "tokenizer t: is damaged or no model of SentencePiece; give the .model file that "
          "spm_train writes");
  }
  const std::string good = piece_file({"ab"}).bytes();
  for (std::size_t n = 0; n < good.size(); ++n) {
    CHECK_FALSE(refusal([&] { parse_piece_model(good.substr(0, n), "t"); }).empty());
  }
  // Fields that nobody knows are skipped.
  parse_piece_model(good + proto_field(99, std::string_view("x")) + proto_field(98, 1.0F), "t");
}

}  // namespace
}  // namespace tritgrad::test::test_piece_model
