#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "engine/files/safetensors.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_safetensors {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string little_endian(std::uint64_t value) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

std::string file_with(std::string_view header, std::string_view data = "") {
  return little_endian(header.size()) + std::string(header) + std::string(data);
}

// The Error for these bytes as file "f", or "accepted".
std::string verdict(std::string_view bytes) {
  try {
    SafetensorsFile::parse(bytes_of(bytes), "f");
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string verdict_of_header(std::string_view header, std::string_view data = "") {
  return verdict(file_with(header, data));
}

// An array of bytes with the given fields.
std::string u8(std::string_view name, std::string_view shape, std::string_view offsets) {
  return concat('"', name, R"(":{"dtype":"U8","shape":)", shape, R"(,"data_offsets":)", offsets,
                "}");
}

// A file whose header hash is right; `rest` follows the hash within the metadata object.
std::string hashed(const std::string& rest, std::string_view data) {
  const std::string start = R"({"__metadata__":{"tritgrad.xxh3":")";
  const std::string zeros = file_with(start + std::string(16, '0') + '"' + rest);
  return file_with(start + hex(xxh3(bytes_of(zeros))) + '"' + rest, data);
}

const std::vector<float> kScales{1.5f, -2.0f, 0.25f};
constexpr std::string_view kTrits = "\x01\x02\x03\x04\x05";

std::vector<StoredTensor> small_model() {
  return {{"trits", Dtype::kU8, {5}, bytes_of(kTrits)},
          {"scales", Dtype::kF32, {3, 1}, std::as_bytes(std::span(kScales))},
          {"empty", Dtype::kI8, {0, 7}, {}}};
}

std::string small_file() {
  const TempDir folder;
  write_safetensors(folder / "f", small_model(), {{"recipe", "fl\u00efp \"votes\"\n"}});
  return read_text(folder / "f");
}

}  // namespace

TEST_CASE("safetensors: what is written is read back") {
  const TempDir folder;
  const auto path = folder / "model.safetensors";
  const Metadata metadata{{"recipe", "fl\u00efp \"votes\"\n"}, {"step", "12"}};
  write_safetensors(path, small_model(), metadata);
  SafetensorsFile opened = SafetensorsFile::open(path);
  const SafetensorsFile file = std::move(opened);  // the views survive a move
  CHECK(file.has_hashes());
  CHECK(file.metadata() == metadata);
  REQUIRE(file.tensors().size() == 3);
  for (const StoredTensor& written : small_model()) {
    const StoredTensor& read = file.tensor(written.name);
    CHECK(read.dtype == written.dtype);
    CHECK(read.shape == written.shape);
    CHECK(std::ranges::equal(read.bytes, written.bytes));
  }
  CHECK(file.find("absent") == nullptr);
  CHECK_THROWS_WITH_AS(file.tensor("absent"), (path.string() + ": has no tensor 'absent'").c_str(),
                       Error);
}

TEST_CASE("safetensors: every dtype has its name and size") {
  constexpr std::array<std::pair<const char*, std::size_t>, 13> kExpected{{{"BOOL", 1},
                                                                           {"U8", 1},
                                                                           {"I8", 1},
                                                                           {"U16", 2},
                                                                           {"I16", 2},
                                                                           {"F16", 2},
                                                                           {"BF16", 2},
                                                                           {"U32", 4},
                                                                           {"I32", 4},
                                                                           {"F32", 4},
                                                                           {"U64", 8},
                                                                           {"I64", 8},
                                                                           {"F64", 8}}};
  for (std::size_t i = 0; i < kExpected.size(); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK(dtype_name(dtype) == kExpected[i].first);
    CHECK(dtype_bytes(dtype) == kExpected[i].second);
    const std::string data(kExpected[i].second, '\x01');
    const TempDir folder;
    write_safetensors(folder / "f", std::vector<StoredTensor>{{"x", dtype, {}, bytes_of(data)}},
                      {});
    CHECK(SafetensorsFile::open(folder / "f").tensor("x").dtype == dtype);
  }
}

TEST_CASE("safetensors: the layout follows the format's rules and keeps arrays aligned") {
  const std::string text = small_file();
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, text.data(), 8);
  CHECK(header_bytes % 8 == 0);
  CHECK(text[8] == '{');
  const SafetensorsFile file = SafetensorsFile::parse(bytes_of(text), "f");
  const std::byte* data = bytes_of(text).data() + 8 + header_bytes;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) {
    names.push_back(tensor.name);
    const auto offset = static_cast<std::size_t>(tensor.bytes.data() - data);
    CHECK(offset % dtype_bytes(tensor.dtype) == 0);
  }
  // Descending element size; the empty array lies where its neighbour begins or ends.
  CHECK(names == std::vector<std::string>{"scales", "trits", "empty"});
}

TEST_CASE("safetensors: the bytes of a tiny file are fixed") {
  const TempDir folder;
  const std::vector<StoredTensor> tensors{{"t", Dtype::kU8, {2}, bytes_of("\x05\x06")}};
  write_safetensors(folder / "f", tensors, {{"step", "1"}});
  // XXH3-64 of 05 06, and of everything before the data with its own digits as zeros.
  const std::string header =
      R"({"__metadata__":{"tritgrad.xxh3":"21fe205225a053da",)"
      R"("tritgrad.integrity":"xxh3","tritgrad.xxh3:t":"49da55390e095f5f","step":"1"},)"
      R"("t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   )";
  CHECK(read_text(folder / "f") == file_with(header, "\x05\x06"));
}

TEST_CASE("safetensors: a file cut short anywhere is refused by name") {
  const std::string whole = small_file();
  const TempDir folder;
  const auto path = folder / "cut.safetensors";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_text(path, std::string_view(whole).substr(0, length));
    std::string message = "accepted";
    try {
      SafetensorsFile::open(path);
    } catch (const Error& error) {
      message = error.what();
    }
    CAPTURE(length);
    CHECK(message.starts_with(path.string() + ": is truncated"));
  }
}

TEST_CASE("safetensors: every single flipped bit of a small file is refused by name") {
  std::string text = small_file();
  REQUIRE(verdict(text) == "accepted");
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const char mask = static_cast<char>(1 << (bit % 8));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    CAPTURE(bit);
    CHECK(verdict(text).starts_with("f: "));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

TEST_CASE("safetensors: a file without arrays keeps its hashes through every flipped bit") {
  const TempDir folder;
  write_safetensors(folder / "f", {}, {});
  std::string text = read_text(folder / "f");
  REQUIRE(SafetensorsFile::open(folder / "f").has_hashes());
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    const char mask = static_cast<char>(1 << (bit % 8));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
    CAPTURE(bit);
    CHECK(verdict(text).starts_with("f: "));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ mask);
  }
}

TEST_CASE("safetensors: 10,000 random flips in a larger file are refused; in data, by tensor") {
  const TempDir folder;
  std::mt19937 random(7);
  std::vector<std::string> planes(4, std::string(4096, '\0'));
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    for (char& byte : planes[i]) byte = static_cast<char>(random());
    tensors.push_back({"layer" + std::to_string(i), Dtype::kU8, {4096}, bytes_of(planes[i])});
  }
  write_safetensors(folder / "f", tensors, {{"step", "1"}});
  std::string text = read_text(folder / "f");
  const std::size_t data_begin = text.size() - 4 * 4096;
  for (int trial = 0; trial < 10'000; ++trial) {
    const std::size_t place = random() % text.size();
    const char mask = static_cast<char>(1 << (random() % 8));
    text[place] = static_cast<char>(text[place] ^ mask);
    const std::string message = verdict(text);
    const std::string expected =
        place < data_begin
            ? "f: "
            : concat("f: tensor 'layer", (place - data_begin) / 4096, "' is damaged");
    CAPTURE(place);
    CHECK(message.starts_with(expected));
    text[place] = static_cast<char>(text[place] ^ mask);
  }
}

TEST_CASE("safetensors: files of other writers are read and flagged") {
  const std::string text = file_with(R"({"b":{"shape":[1],"data_offsets":[2,3],"dtype":"U8"},)"
                                     R"("a":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]},)"
                                     R"("__metadata__":{"format":"pt"}}   )",
                                     "\x01\x02\x03");
  const SafetensorsFile file = SafetensorsFile::parse(bytes_of(text), "f");
  CHECK_FALSE(file.has_hashes());
  CHECK(file.metadata() == Metadata{{"format", "pt"}});
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[1].bytes[0] == std::byte{3});
  CHECK(verdict_of_header("{}") == "accepted");
  CHECK(verdict_of_header("{" + u8("x", "[]", "[0,1]") + "}", "x") == "accepted");
}

TEST_CASE("safetensors: hashes that are incomplete or foreign are refused") {
  const std::string x = u8("x", "[2]", "[0,2]") + "}";
  const std::string own = R"(,"tritgrad.xxh3:x":")" + hex(xxh3(bytes_of("ab"))) + '"';
  const std::string says = R"(,"tritgrad.integrity":"xxh3")";
  CHECK(verdict(hashed(says + own + "}," + x, "ab")) == "accepted");
  CHECK(verdict(hashed(says + "}," + x, "ab"))
            .starts_with("f: metadata key 'tritgrad.xxh3:x' is missing"));
  CHECK(verdict(hashed(own + "}," + x, "ab"))
            .starts_with("f: metadata key 'tritgrad.integrity' is missing"));
  CHECK(verdict(hashed(R"(,"tritgrad.integrity":"crc")" + own + "}," + x, "ab")) ==
        "f: metadata key tritgrad.integrity is not xxh3; written by a newer tritgrad?");
  CHECK(verdict(hashed(says + own + R"(,"tritgrad.xxh3:y":""},)" + x, "ab")) ==
        "f: metadata key 'tritgrad.xxh3:y' belongs to no tensor");
  CHECK(verdict_of_header(R"({"__metadata__":{"tritgrad.integrity":"xxh3"}})") ==
        "f: the header does not begin with its hash; the file is damaged or was rewritten by "
        "another program");
  CHECK(verdict_of_header(R"({"__metadata__":{"tritgrad.xxh3":""}})")
            .starts_with("f: the header is damaged"));
}

TEST_CASE("safetensors: each breach of the format has its own sentence") {
  const std::string tensor = u8("x", "[2]", "[0,2]");
  struct Breach {
    std::string header;
    std::string message;
  };
  const std::vector<Breach> breaches{
      {" {}", "f: the header does not begin with '{'"},
      {"", "f: the header does not begin with '{'"},
      {"[]", "f: the header does not begin with '{'"},
      {"\xef\xbb\xbf{}", "f: the header does not begin with '{'"},
      {"{} {}", "f: the header is not valid JSON at its byte 4: unexpected '{'"},
      {"{}\x01", "f: the header is not valid JSON at its byte 3"},
      {"{\"\xff\":1}", "ill-formed UTF-8 byte"},
      {"{\"x\x01\":1}", "control character U+0001"},
      {R"({"x\u0001":{}})", "f: the tensor name 'x?' holds a control character"},
      {R"({"":{}})", "f: a tensor has an empty name"},
      {"{" + tensor + "," + tensor + "}", "f: the header has 'x' twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "f: the header has '__metadata__' twice"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "f: metadata key 'a' appears twice"},
      {R"({"__metadata__":{"a":1}})", "f: metadata key 'a' holds a number, expected a string"},
      {R"({"__metadata__":{"a":null}})", "f: metadata key 'a' holds null, expected a string"},
      {R"({"__metadata__":{"a":{}}})", "f: metadata key 'a' holds an object, expected a string"},
      {R"({"__metadata__":[]})", "f: __metadata__ holds an array, expected an object"},
      {R"({"x":1.5})", "f: tensor 'x' holds a number, expected an object"},
      {R"({"x":true})", "f: tensor 'x' holds a boolean, expected an object"},
      {R"({"x":{"dtype":"U8","dtype":"U8"}})", "f: tensor 'x' has the field 'dtype' twice"},
      {R"({"x":{"colour":"red"}})", "f: tensor 'x' has the unknown field 'colour'"},
      {R"({"x":{"dtype":"U9"}})", "f: tensor 'x' has the unknown dtype 'U9'"},
      {R"({"x":{"dtype":8}})", "f: the dtype of tensor 'x' holds a number, expected a string"},
      {R"({"x":{}})", "f: tensor 'x' has no dtype"},
      {R"({"x":{"dtype":"U8"}})", "f: tensor 'x' has no shape"},
      {R"({"x":{"dtype":"U8","shape":[2]}})", "f: tensor 'x' has no data_offsets"},
      {"{" + u8("x", "[-2]", "[0,2]") + "}",
       "f: the shape of tensor 'x' holds the negative number"},
      {"{" + u8("x", "[2.0]", "[0,2]") + "}",
       "f: the shape of tensor 'x' holds '2.0', expected a whole number below 2^64"},
      {"{" + u8("x", "[18446744073709551616]", "[0,2]") + "}",
       "f: the shape of tensor 'x' holds '18446744073709551616', expected a whole number"},
      {"{" + u8("x", "[1e999]", "[0,2]") + "}", "a number out of range"},
      {"{" + u8("x", R"(["2"])", "[0,2]") + "}",
       "f: the shape of tensor 'x' holds a string, expected whole numbers only"},
      {"{" + u8("x", "2", "[0,2]") + "}",
       "f: the shape of tensor 'x' holds a number, expected an array of numbers"},
      {"{" + u8("x", "[2]", "[2]") + "}", "f: the data_offsets of tensor 'x' has 1 numbers"},
      {"{" + u8("x", "[2]", "[0,1,2]") + "}",
       "f: the data_offsets of tensor 'x' has more than two numbers"},
      {"{" + u8("x", "[2]", "[2,0]") + "}", "f: tensor 'x' ends at 0, before its begin at 2"},
      {"{" + u8("x", "[3]", "[0,2]") + "}",
       "f: tensor 'x' occupies 2 bytes, its shape and dtype need 3"},
      {"{" + u8("x", "[4294967296,4294967296]", "[0,2]") + "}",
       "f: the shape of tensor 'x' has more than 2^64 bytes"},
      {"{" + u8("x", "[9223372036854775808,9223372036854775808,0]", "[0,0]") + "}",
       "f: the shape of tensor 'x' has more than 2^64 bytes"},
      {"{" + u8("x", "[2]", "[1,3]") + "}",
       "f: the first tensor, 'x', begins at offset 1, expected 0"},
      {"{" + tensor + "," + u8("y", "[2]", "[3,5]") + "}",
       "f: a hole of 1 bytes lies before tensor 'y'"},
      {"{" + tensor + "," + u8("y", "[2]", "[1,3]") + "}",
       "f: tensor 'y' at offset 1 overlaps the one before it, which ends at 2"},
      {"{" + u8("x", "[1]", "[0,1]") + "}", "f: 1 trailing bytes follow the last tensor"},
      {"{" + u8("x", "[3]", "[0,3]") + "}",
       "f: is truncated within tensor 'x': the data has 2 bytes, the tensor ends at 3"},
      {"{" + tensor + ",}", "f: the header is not valid JSON"},
      {"{" + tensor, "unexpected end of input"},
      {"{/**/}", "f: the header is not valid JSON"},
  };
  for (const Breach& breach : breaches) {
    const std::string message = verdict_of_header(breach.header, "ab");
    CAPTURE(breach.header);
    CAPTURE(message);
    CHECK(message.find(breach.message) != std::string::npos);
    CHECK(message.starts_with("f: "));
  }
}

TEST_CASE("safetensors: a header that is too long, or longer than the file, is refused") {
  CHECK(verdict(little_endian(100'000'001) + "{}") ==
        "f: claims a header of 100000001 bytes, at most 100000000 allowed");
  CHECK(verdict(little_endian(~std::uint64_t{0}) + "{}").starts_with("f: claims a header of"));
  CHECK(verdict(little_endian(3) + "{}") ==
        "f: is truncated within its header: 2 of 3 bytes; restore it from a copy");
}

TEST_CASE("safetensors: nesting bombs and endless names end in a short sentence") {
  const std::string deep(1'000'000, '[');
  CHECK(verdict_of_header(R"({"x":)" + deep) == "f: tensor 'x' holds an array, expected an object");
  CHECK(verdict_of_header(R"({"x":{"shape":)" + deep) ==
        "f: the shape of tensor 'x' holds an array, expected whole numbers only");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"x":)";
  CHECK(verdict_of_header(objects).size() < 200);
  CHECK(verdict_of_header("{\"" + std::string(1'000'000, 'n')).size() < 300);
  CHECK(verdict_of_header("{\"" + std::string(1'000'000, 'n') + "\":1}").size() < 300);
}

TEST_CASE("safetensors: what is not a regular file is refused") {
  const TempDir folder;
  CHECK_THROWS_WITH_AS(SafetensorsFile::open(folder.path()),
                       (folder.path().string() + ": is not a regular file; name a file").c_str(),
                       Error);
  const std::string missing = (folder / "none").string();
  CHECK_THROWS_WITH_AS(
      SafetensorsFile::open(missing),
      (missing + ": cannot be opened for reading: No such file or directory; check the path")
          .c_str(),
      Error);
}

TEST_CASE("safetensors: the writer refuses what could not be read back, and keeps the old file") {
  const TempDir folder;
  const auto path = folder / "f";
  write_text(path, "old");
  const auto refused = [&](const std::vector<StoredTensor>& tensors, const Metadata& metadata) {
    try {
      write_safetensors(path, tensors, metadata);
      return std::string("accepted");
    } catch (const Error& error) {
      CHECK(read_text(path) == "old");
      return std::string(error.what()).substr(path.string().size());
    }
  };
  const auto data = bytes_of("ab");
  const StoredTensor good{"x", Dtype::kU8, {2}, data};
  CHECK(refused({good, good}, {}) == ": two tensors are named 'x'");
  CHECK(refused({{"", Dtype::kU8, {2}, data}}, {}) == ": a tensor has an empty name");
  CHECK(refused({{"__metadata__", Dtype::kU8, {2}, data}}, {}) ==
        ": no tensor may be named __metadata__");
  CHECK(refused({{"a\nb", Dtype::kU8, {2}, data}}, {}) ==
        ": the tensor name 'a?b' holds a control character");
  CHECK(refused({{"x", Dtype::kU8, {3}, data}}, {}) ==
        ": tensor 'x' comes with 2 bytes, its shape and dtype need 3");
  CHECK(refused({{"x\xff", Dtype::kU8, {2}, data}}, {}).ends_with("is not valid UTF-8"));
  CHECK(refused({good}, {{"k", "\xff"}}).ends_with("is not valid UTF-8"));
  CHECK(refused({good}, {{"tritgrad.xxh3", ""}}) ==
        ": metadata key 'tritgrad.xxh3' is reserved for hashes; choose another");
}

}  // namespace tritgrad::test::test_safetensors
