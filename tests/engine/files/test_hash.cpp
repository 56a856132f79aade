#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_hash {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-4 examples: the empty message, one block, two blocks.
constexpr std::string_view kTwoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
constexpr std::string_view kTwoBlocksDigest =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
constexpr std::string_view kMillionDigest =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

}  // namespace

TEST_CASE("hash: SHA-256 gives the digests of FIPS 180-4") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(bytes_of("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(bytes_of(kTwoBlocks)) == kTwoBlocksDigest);
  CHECK(sha256_hex(bytes_of(std::string(1'000'000, 'a'))) == kMillionDigest);
}

TEST_CASE("hash: SHA-256 does not depend on how the bytes are cut, and starts afresh") {
  for (std::size_t cut = 0; cut <= kTwoBlocks.size(); ++cut) {
    Sha256 hash;
    hash.update(bytes_of(kTwoBlocks.substr(0, cut)));
    hash.update(bytes_of(kTwoBlocks.substr(cut)));
    CHECK(hash.finish() == kTwoBlocksDigest);
    CHECK(hash.finish() == sha256_hex({}));
  }
}

TEST_CASE("hash: XXH3-64 of nothing is the published constant; a bit changes it") {
  CHECK(xxh3({}) == 0x2d06800538d394c2);
  CHECK(xxh3(bytes_of("trit")) != xxh3(bytes_of("tris")));
  CHECK(xxh3({}, {}) == xxh3({}));
  CHECK(xxh3(bytes_of("abcdefgh"), {}) == xxh3(bytes_of("abcdefgh")));
  CHECK(xxh3(bytes_of("abefcdgh"), {2, 4, 2}) == xxh3(bytes_of("abcdefgh")));
}

TEST_CASE("hash: hexadecimal is 16 lower-case digits, most significant first") {
  CHECK(hex(0) == "0000000000000000");
  CHECK(hex(0x2d06800538d394c2) == "2d06800538d394c2");
  CHECK(hex(~std::uint64_t{0}) == "ffffffffffffffff");
}

}  // namespace tritgrad::test::test_hash
