#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "engine/data/byte_pairs.h"
#include "engine/data/token_text.h"
#include "engine/data/vocabulary.h"
#include "engine/files/hash.h"
#include "engine/memory/ledger.h"
#include "engine/memory/parallel.h"
#include "tests/support/piece_file.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_vocabulary {
namespace {

using Tokens = std::vector<std::int32_t>;

const std::string kMark = "\xE2\x96\x81";  // a space in pieces

Vocabulary pieces_of(const std::vector<std::string>& texts) {
  return Vocabulary::of_pieces(piece_file(texts).bytes(), "t");
}

// The pieces of a text, with bars between them.
std::string pieces(const Vocabulary& vocabulary, const std::string& text) {
  std::string all;
  for (const std::int32_t token : vocabulary.encode(text)) {
    all += (all.empty() ? "" : "|") + vocabulary.piece(token).text;
  }
  return all;
}

// A text of letters, spaces, lines, characters of several bytes, marks and bytes of no character.
std::string random_text(std::mt19937& random, std::size_t parts) {
  const std::vector<std::string> all = {"a",    "b",    "c",        "ab",           " ",
                                        "  ",   "\n",   "\xC3\xA4", "\xE2\x82\xAC", kMark,
                                        "\xFF", "\xC3", "\t",       "<0x41>"};
  std::string text;
  for (std::size_t i = 0; i < parts; ++i) text += all[random() % all.size()];
  return text;
}

TEST_CASE("vocabulary: bytes are their own tokens") {
  const Vocabulary bytes = Vocabulary::of_bytes();
  CHECK(bytes.is_bytes());
  CHECK(bytes.size() == 256);
  CHECK_FALSE(bytes.adds_space());
  CHECK(bytes.model().empty());
  const std::string text("a\xFF\0 ", 4);
  CHECK(bytes.encode(text) == Tokens{97, 255, 0, 32});
  CHECK(bytes.decode(bytes.encode(text)) == text);
  CHECK(bytes.bytes_of(10) == "\n");
  CHECK(bytes.piece(10).text == "<0x0A>");
  CHECK(bytes.piece(10).type == PieceType::kByte);
  CHECK(bytes.find("<0xFF>") == 255);
  CHECK_FALSE(bytes.find("a").has_value());
}

TEST_CASE(
    "vocabulary: of two neighbours those with the better score become one, the first of equals") {
  // "abab" is better than "aba", which is found first from the left.
  const Vocabulary v = pieces_of({"a", "b", "ab", "abab", "aba", "c", "bc", kMark, kMark + "a"});
  CHECK(pieces(v, "abab") == kMark + "|abab");
  CHECK(pieces(v, "ababab") == kMark + "|abab|ab");
  CHECK(pieces(v, "aaa") == kMark + "a|a|a");
  CHECK(pieces(v, "abc") == kMark + "|ab|c");  // not bc, whose score is worse
  CHECK(pieces(v, "a b") == kMark + "a|" + kMark + "|b");
  CHECK(pieces(v, "x\nb") == kMark + "|<0x78>|<0x0A>|b");
  CHECK(pieces(v, "").empty());
}

TEST_CASE("vocabulary: a space is put before a text, not before one that goes on") {
  const Vocabulary v = pieces_of({kMark, "a", kMark + "a"});
  CHECK(v.encode("a a") == Tokens{261, 261});
  CHECK(v.encode_more("a a") == Tokens{260, 261});
  CHECK(v.decode(v.encode(" a")) == " a");
  CHECK(v.decode(v.encode("a")) == "a");
  PieceFile file = piece_file({kMark, "a", kMark + "a"});
  file.normalizer += proto_field(3, std::uint64_t{0});
  const Vocabulary bare = Vocabulary::of_pieces(file.bytes(), "t");
  CHECK_FALSE(bare.adds_space());
  CHECK(bare.encode("a a") == Tokens{260, 261});
  CHECK(bare.decode(bare.encode(" a")) == " a");
}

TEST_CASE(
    "vocabulary: a user's pieces are found first, the longest of them, and joined to nothing") {
  PieceFile file = piece_file({"a", "b", "ab", "<"});
  file.pieces.push_back({"<x>", 0.0F, PieceType::kUserDefined});
  file.pieces.push_back({"<x>b", 0.0F, PieceType::kUserDefined});
  const Vocabulary v = Vocabulary::of_pieces(file.bytes(), "t");
  CHECK(v.encode_more("a<x>ba<x") == Tokens{259, 264, 259, 262, 3 + 'x'});
  CHECK(v.encode_more("<x>a") == Tokens{263, 259});
}

TEST_CASE("vocabulary: every text comes back from its tokens, byte for byte and one by one") {
  const Vocabulary v =
      pieces_of({"a", "ab", "b", "\xC3\xA4", kMark, kMark + kMark, kMark + "a", "\t"});
  std::mt19937 random(1);
  for (std::size_t n = 0; n < 300; ++n) {
    const std::string text = random_text(random, n);
    const Tokens tokens = v.encode(text);
    CHECK(v.decode(tokens) == text);
    std::string joined;
    for (const std::int32_t token : tokens) joined += v.bytes_of(token);
    CHECK(joined == (text.empty() ? "" : " ") + text);
    CHECK(v.decode(v.encode_more(" " + text)) == text);
  }
  // Where a space is no piece it is a byte, not the three of its mark.
  const Vocabulary bare = pieces_of({"a", kMark + "a"});
  CHECK(pieces(bare, "b a") == "<0x20>|<0x62>|" + kMark + "a");
  CHECK(bare.decode(bare.encode("b  a")) == "b  a");
  CHECK(pieces(v, kMark) == kMark + "|<0xE2>|<0x96>|<0x81>");
}

TEST_CASE("vocabulary: long lines are cut before a space, else between characters") {
  constexpr std::size_t kMost = 65536;
  CHECK(encoded_together("") == 0);
  CHECK(encoded_together("ab\ncd") == 3);
  CHECK(encoded_together("\n\n") == 1);
  CHECK(encoded_together("abc") == 3);
  CHECK(encoded_together(std::string(kMost, 'a')) == kMost);
  CHECK(encoded_together(std::string(kMost, 'a') + "b") == kMost);
  CHECK(encoded_together(std::string(100, 'a') + " " + std::string(kMost, 'b')) == 100);
  CHECK(encoded_together(" " + std::string(kMost, 'b')) == kMost);
  CHECK(encoded_together(std::string(kMost - 1, 'a') + "\n\n") == kMost);
  CHECK(encoded_together(std::string(kMost - 1, 'a') + "\xC3\xA4" + "b") == kMost - 1);
  CHECK(encoded_together(std::string(kMost - 3, 'a') + "\xF0\x9F\x98\x80" + "b") == kMost - 3);
  CHECK(encoded_together(std::string(2 * kMost, '\x80')) == kMost);  // no characters at all
  const Vocabulary v = pieces_of({kMark, "a", kMark + "a", "aa", kMark + "aa"});
  std::string words = "a";
  while (words.size() < 3 * kMost) words += words.size() % 7 == 0 ? " aa" : " a";
  Tokens whole;
  // At once, as one line.
  const PieceModel model = parse_piece_model(v.model(), "t");
  BytePairs(model.pieces).encode(words, true, whole);
  CHECK(v.encode(words) == whole);
}

TEST_CASE("vocabulary: tokens that are none are refused") {
  const Vocabulary v = pieces_of({"a"});
  for (const std::int64_t token : {std::int64_t{-1}, std::int64_t{260}, INT64_MAX}) {
    CHECK(contains(refusal([&] { v.piece(token); }), "none of the vocabulary's, 0 to 259"));
    CHECK(contains(refusal([&] { v.bytes_of(token); }), "none of the vocabulary's"));
  }
  CHECK(contains(refusal([&] { v.decode(Tokens{0, 260}); }), "token 260 is none"));
}

TEST_CASE("vocabulary: a file is read, and made anew from its bytes") {
  const TempDir dir;
  const std::string bytes = piece_file({"a"}).bytes();
  const Vocabulary v = open_vocabulary("sentencepiece:" + dir.write("t.model", bytes));
  CHECK(v.model() == bytes);
  CHECK(v.hash() == xxh3(std::as_bytes(std::span(bytes))));
  CHECK(Vocabulary::of_pieces(v.model(), "checkpoint").encode("a") == v.encode("a"));
  const std::string path = dir.write("bad.model", "bad");
  CHECK(refusal([&] {
          open_vocabulary("sentencepiece:" + path);
        }).starts_with("tokenizer " + path + ": is damaged"));
  CHECK(contains(refusal([&] { open_vocabulary("sentencepiece:" + (dir / "none").string()); }),
                 "no such file"));
}

TEST_CASE("vocabulary: what is asked for is bytes or a file") {
  CHECK(open_vocabulary("bytes").is_bytes());
  for (const char* tokens : {"", "byte", "sentencepiece", "sentencepiece:", "t.model"}) {
    CHECK(refusal([&] { open_vocabulary(tokens); }) ==
          "tokens '" + std::string(tokens) +
              "': bytes or sentencepiece:FILE expected, where FILE is a .model file of spm_train");
  }
}

TEST_CASE("token text: pieces of a folder are those of its files, in two bytes each") {
  const Vocabulary v = pieces_of({kMark, "a", "b", "ab", kMark + "a"});
  const TempDir dir;
  dir.write("t/1", "ab a\n");
  dir.write("t/2", "a b");
  const std::int64_t before = ledger::live(Category::kData);
  const TokenText text = open_tokens((dir / "t").string(), v);
  Tokens expected = v.encode("ab a\n");
  for (const std::int32_t token : v.encode_more("a b")) expected.push_back(token);
  REQUIRE(text.size() == static_cast<std::int64_t>(expected.size()));
  CHECK(ledger::live(Category::kData) - before == 2 * text.size());
  Tokens tokens(expected.size());
  text.read(0, text.size(), tokens.data());
  CHECK(tokens == expected);
  CHECK(text.vocabulary() == v.size());
  CHECK(text.byte_count() == 8);
  CHECK(text.byte_count(0, text.size()) == 8);
  CHECK(text.byte_count(0, 0) == 0);
  for (std::int64_t cut = 0; cut <= text.size(); ++cut) {
    CHECK(text.byte_count(0, cut) + text.byte_count(cut, text.size() - cut) == 8);
  }
  CHECK(text.hash() == open_tokens(dir.write("joined", "ab a\na b"), v).hash());
  CHECK(text.hash() != open_tokens(dir.write("other", "ab a\na a"), v).hash());
}

TEST_CASE("token text: pieces do not depend on the number of threads") {
  const Vocabulary v = pieces_of({kMark, "a", "b", "ab", kMark + "a"});
  std::mt19937 random(2);
  std::string content;
  while (content.size() < 1'000'000) content += "ab a" + std::string(random() % 9, 'b') + "\n";
  const TempDir dir;
  const std::string path = dir.write("text", content);
  const Tokens expected = v.encode(content);
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const TokenText text = open_tokens(path, v);
    REQUIRE(text.size() == static_cast<std::int64_t>(expected.size()));
    Tokens tokens(expected.size());
    text.read(0, text.size(), tokens.data());
    CHECK(tokens == expected);
  }
  set_thread_count(0);
}

TEST_CASE("token text: more than 65536 pieces take four bytes each") {
  std::vector<std::string> texts;
  for (int i = 0; i < 65536; ++i) texts.push_back("word" + std::to_string(i));
  texts.emplace_back("a");
  const Vocabulary v = pieces_of(texts);
  const TempDir dir;
  const std::int64_t before = ledger::live(Category::kData);
  const TokenText text = open_tokens(dir.write("text", "xa"), v);
  CHECK(ledger::live(Category::kData) - before == 4 * text.size());
  std::int32_t token = 0;
  text.read(text.size() - 1, 1, &token);
  CHECK(token == 259 + 65536);
}

// ---- the reference: SentencePiece's own programs
// -------------------------------------------------

bool has_sentencepiece() {
  return std::system("command -v spm_train >/dev/null && command -v spm_encode >/dev/null") == 0;
}

// Sentences of a small language, with what is rare in them.
std::string small_text() {
  const char* const words[] = {"the",   "sea",  "and",  "ships", "there", "\xC3\xA9t\xC3\xA9",
                               "sail,", "seas", "then", "1811"};
  std::mt19937 random(3);
  std::string text;
  for (int line = 0; line < 400; ++line) {
    for (std::size_t n = random() % 9; n > 0; --n) {
      text += std::string(words[random() % std::size(words)]) + (random() % 8 == 0 ? "  " : " ");
    }
    text += line % 50 == 0 ? "\xE2\x82\xAC!\n" : ".\n";
  }
  return text;
}

void check_as_spm_encode(const TempDir& dir, const std::string& options) {
  CAPTURE(options);
  const std::string text = dir.write("text", small_text()), model = (dir / "m").string();
  REQUIRE(
      std::system((std::string(kPieceTraining) + " --input=" + text + " --model_prefix=" + model +
                   " --vocab_size=300 --add_dummy_prefix=false " + options + " >/dev/null 2>&1")
                      .c_str()) == 0);
  const std::string ids = (dir / "ids").string();
  REQUIRE(std::system(("spm_encode --model=" + model + ".model --output_format=id --input=" + text +
                       " --output=" + ids)
                          .c_str()) == 0);
  const Vocabulary v = open_vocabulary("sentencepiece:" + model + ".model");
  CHECK(v.size() == 300);
  // The program encodes lines without their ends.
  Tokens expected;
  std::ifstream lines(ids);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    for (std::int32_t token = 0; numbers >> token;) expected.push_back(token);
    expected.push_back(v.find("<0x0A>").value());
  }
  CHECK(v.encode(small_text()) == expected);
}

TEST_CASE("vocabulary: tokens are those of SentencePiece itself, trained by its trainer") {
  if (!has_sentencepiece()) {
    MESSAGE("skipped: spm_train and spm_encode are not installed (Debian's sentencepiece)");
    return;
  }
  const TempDir dir;
  check_as_spm_encode(dir, "");
  check_as_spm_encode(dir, "--user_defined_symbols=the,sea,ea --character_coverage=0.98");
  check_as_spm_encode(dir, "--split_by_whitespace=false");
}

TEST_CASE("vocabulary: what spm_train makes of its own accord is refused, with the way out") {
  if (!has_sentencepiece()) {
    MESSAGE("skipped: spm_train is not installed (Debian's sentencepiece)");
    return;
  }
  const TempDir dir;
  const std::string text = dir.write("text", small_text()), model = (dir / "m").string();
  REQUIRE(std::system(("spm_train --vocab_size=25 --input=" + text + " --model_prefix=" + model +
                       " >/dev/null 2>&1")
                          .c_str()) == 0);
  const std::string message =
      refusal([&] { open_vocabulary("sentencepiece:" + model + ".model"); });
  CHECK(message ==
        "tokenizer " + model +
            ".model: its type is unigram, bpe expected; train one with: " + kPieceTraining);
}

}  // namespace
}  // namespace tritgrad::test::test_vocabulary
