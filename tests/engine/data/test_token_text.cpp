#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "engine/data/token_text.h"
#include "engine/files/hash.h"
#include "engine/memory/ledger.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_token_text {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const TokenText& text, std::int64_t begin, std::int64_t n) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  text.read(begin, n, tokens.data());
  std::string bytes;
  for (const std::int32_t token : tokens) bytes += static_cast<char>(token);
  return bytes;
}

std::string all_of(const TokenText& text) { return bytes_of(text, 0, text.size()); }

std::uint64_t hash_of(const std::string& text) {
  return xxh3(std::as_bytes(std::span(text.data(), text.size())));
}

TEST_CASE("token text: every byte of a file is a token, and no memory is taken for it") {
  const TempDir dir;
  std::string content =
      "Gr\xC3\xBC\xC3\x9F"
      "e\n";
  for (int byte = 1; byte < 128; ++byte) content += static_cast<char>(byte);
  const std::int64_t before = ledger::live(Category::kData);
  const TokenText text = open_bytes(dir.write("a.txt", content));
  CHECK(ledger::live(Category::kData) == before);
  CHECK(text.size() == static_cast<std::int64_t>(content.size()));
  CHECK(text.byte_count() == text.size());
  CHECK(text.byte_count(3, 4) == 4);
  CHECK(text.vocabulary() == 256);
  CHECK(all_of(text) == content);
  CHECK(text.hash() == hash_of(content));
}

TEST_CASE("token text: a folder is its files in the order of their bytes, without hidden ones") {
  const TempDir dir;
  // '-' < '.' < '/' < 'B' < 'a' < 0xC3; a file in a folder stands where its whole path does.
  dir.write("t/b/x", "5");
  dir.write("t/b-", "3");
  dir.write("t/b.txt", "4");
  dir.write("t/B", "1");
  dir.write("t/a", "2");
  dir.write("t/empty", "");
  dir.write("t/\xC3\xA4", "6");
  dir.write("t/.git/x", std::string("\0", 1));
  dir.write("t/b/.x.swp", "no");
  const TokenText text = open_bytes((dir / "t").string());
  CHECK(all_of(text) == "123456");
  CHECK(text.hash() == hash_of("123456"));
  CHECK(all_of(open_bytes((dir / "t/").string())) == "123456");
}

TEST_CASE("token text: every range of a text in several files is read") {
  const TempDir dir;
  dir.write("t/1", "ab");
  dir.write("t/2", "c");
  dir.write("t/3", "");
  dir.write("t/4", "defg");
  const std::string whole = "abcdefg";
  const TokenText text = open_bytes((dir / "t").string());
  for (std::int64_t begin = 0; begin <= 7; ++begin) {
    for (std::int64_t n = 0; n <= 7 - begin; ++n) {
      CHECK(bytes_of(text, begin, n) ==
            whole.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(n)));
    }
  }
}

TEST_CASE("token text: ranges beyond the text are refused with its size") {
  const TempDir dir;
  const TokenText text = open_bytes(dir.write("a", "abcdefg"));
  std::int32_t out = 0;
  constexpr std::int64_t kHuge = INT64_MAX;
  const std::int64_t ranges[][2] = {{0, 8},  {7, 1},     {8, 0},    {-1, 1},
                                    {0, -1}, {1, kHuge}, {kHuge, 1}};
  for (const auto& range : ranges) {
    CHECK(contains(refusal([&] { text.read(range[0], range[1], &out); }), "the text has 7"));
    CHECK(contains(refusal([&] { text.byte_count(range[0], range[1]); }), "the text has 7"));
  }
}

TEST_CASE("token text: threads read the same text at once") {
  const TempDir dir;
  std::string whole;
  for (int file = 0; file < 50; ++file) {
    const std::string part(static_cast<std::size_t>(file * 7), static_cast<char>('A' + file % 26));
    dir.write("t/" + std::to_string(100 + file), part);
    whole += part;
  }
  const TokenText text = open_bytes((dir / "t").string());
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t begin = t; begin + 100 <= whole.size(); begin += 13) {
        const auto first = static_cast<std::int64_t>(begin);
        wrong[t] += bytes_of(text, first, 100) != whole.substr(begin, 100);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::count(wrong.begin(), wrong.end(), 0) == 4);
}

TEST_CASE("token text: what is missing, empty or not a file is refused with its path") {
  const TempDir dir;
  const auto said = [&](const std::string& name) {
    return refusal([&] { open_bytes((dir / name).string()); });
  };
  CHECK(contains(said("none.txt"), "none.txt: there is no such file or folder; check the path"));
  dir.write("file", "x");
  CHECK(contains(said("file/below"), "file/below: there is no such file or folder"));
  dir.write("empty.txt", "");
  CHECK(contains(said("empty.txt"), "empty.txt: the file is empty; give a text"));
  dir.write("empties/1", "");
  dir.write("empties/2", "");
  CHECK(contains(said("empties"), "empties: all files are empty; give a text"));
  fs::create_directories(dir / "bare/sub");
  dir.write("bare/sub/.hidden", "x");
  CHECK(contains(said("bare"), "bare: the folder holds no files; give a text file"));
  dir.write("linked/a", "x");
  fs::create_directory_symlink(dir / "bare", dir / "linked/bare");
  CHECK(contains(said("linked"), "linked/bare: is not a regular file; name a file"));
  fs::create_symlink("nowhere", dir / "dangling");
  CHECK(contains(said("dangling"), "dangling: there is no such file or folder"));
  fs::remove(dir / "linked/bare");
  fs::create_symlink("nowhere", dir / "linked/gone");
  CHECK(contains(said("linked"), "linked/gone: cannot be opened for reading: No such file"));
}

TEST_CASE("token text: a NUL byte is refused with its place, wherever it stands") {
  const TempDir dir;
  for (const std::size_t place : {std::size_t{0}, std::size_t{5}, std::size_t{3'000'000}}) {
    std::string content(3'000'001, 'a');
    content[place] = '\0';
    dir.write("t/a", "good");
    dir.write("t/b", content);
    CHECK(contains(refusal([&] { open_bytes((dir / "t").string()); }),
                   "t/b: byte " + std::to_string(place) + " (counted from 0) is NUL"));
  }
}

TEST_CASE("token text: bytes of an old encoding are text, bytes that are mostly none are not") {
  const TempDir dir;
  const std::string good = "\xE4" + std::string(9, 'a');  // Latin-1: one of ten
  const TokenText text = open_bytes(dir.write("latin1", good));
  CHECK(all_of(text) == good);
  const std::string bad = "\xE4\xE4" + std::string(17, 'a');
  CHECK(contains(refusal([&] { open_bytes(dir.write("bad", bad)); }),
                 "bad: 2 of the first 19 bytes belong to no character of UTF-8, at most 10 %"));
}

}  // namespace
}  // namespace tritgrad::test::test_token_text
