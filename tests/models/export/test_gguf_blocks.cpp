// Blocks of GGUF's ternary types: bytes by hand, and every trit read back. And fp16 numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/formats/half_bits.h"
#include "models/export/gguf_blocks.h"
#include "tests/support/gguf_reader.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_gguf_blocks {
namespace {

// A row of zeros but for these trits.
InferenceProduct row_of(std::int64_t inputs, const std::map<std::int64_t, int>& trits,
                        float scale) {
  InferenceProduct w{.name = "w", .inputs = inputs, .outputs = 1, .group = inputs};
  w.trits.resize(static_cast<std::size_t>(inputs));
  for (const auto& [at, trit] : trits) {
    w.trits[static_cast<std::size_t>(at)] = static_cast<std::int8_t>(trit);
  }
  w.scales = {scale};
  return w;
}

// Bytes that are all `usual` but for these.
std::string bytes_of(std::size_t count, int usual, const std::map<std::size_t, int>& others) {
  std::string bytes(count, static_cast<char>(usual));
  for (const auto& [at, byte] : others) bytes[at] = static_cast<char>(byte);
  return bytes;
}

const std::string kHalf("\x00\x38", 2);  // 0.5 in fp16

InferenceProduct random_product(std::int64_t inputs, std::int64_t outputs, std::int64_t group) {
  InferenceProduct w{.name = "w", .inputs = inputs, .outputs = outputs, .group = group};
  for (const float x : numbers(inputs * outputs, 5)) {
    w.trits.push_back(static_cast<std::int8_t>(std::lround(1.499f * x)));
  }
  for (const float x : numbers(outputs * w.groups(), 6))
    w.scales.push_back(round_to_half(x + 1.5f));
  return w;
}

}  // namespace

TEST_CASE("gguf blocks: bytes of TQ1_0, by hand") {
  // Five zeros are the digits 11111 in base 3, 121, and ceil(256 121 / 243) = 128; the last four
  // bytes have four, and 11110 is 120, which becomes 127.
  const InferenceProduct w =
      row_of(256, {{0, 1}, {128, -1}, {160, 1}, {239, 1}, {240, -1}, {255, 1}}, 0.5f);
  std::string expected = bytes_of(48, 128,
                                  {{0, 212},     // 121 + 81 - 1 = 201
                                   {32, 213},    // 121 + 81 = 202
                                   {47, 129}});  // 121 + 1 = 122
  expected += bytes_of(4, 127,
                       {{0, 42},     // 120 - 81 = 39
                        {3, 130}});  // 120 + 3 = 123
  CHECK(encode_trits(w, GgufType::kTq1) == expected + kHalf);
}

TEST_CASE("gguf blocks: bytes of TQ2_0, by hand") {
  // Four zeros are the codes 1 1 1 1, 0b01010101.
  const InferenceProduct w = row_of(256, {{0, 1}, {32, -1}, {223, 1}}, 0.5f);
  CHECK(encode_trits(w, GgufType::kTq2) ==
        bytes_of(64, 0b01010101, {{0, 0b01010010}, {63, 0b01100101}}) + kHalf);
}

TEST_CASE("gguf blocks: bytes of Q2_0, by hand") {
  const InferenceProduct w = row_of(64, {{0, 1}, {3, -1}, {63, 1}}, 0.5f);
  CHECK(encode_trits(w, GgufType::kQ2) ==
        kHalf + bytes_of(16, 0b01010101, {{0, 0b00010110}, {15, 0b10010101}}));
}

TEST_CASE("gguf blocks: ggml's decoding gives every trit times the scale of its group") {
  struct Case {
    GgufType type;
    std::int64_t inputs, group;
  };
  for (const Case& each : {Case{GgufType::kTq1, 512, 512}, Case{GgufType::kTq1, 768, 256},
                           Case{GgufType::kTq2, 512, 512}, Case{GgufType::kTq2, 768, 256},
                           Case{GgufType::kQ2, 192, 192}, Case{GgufType::kQ2, 192, 64},
                           Case{GgufType::kQ2, 192, 128}}) {
    CAPTURE(kGgufTypes.name(each.type));
    const InferenceProduct w = random_product(each.inputs, 11, each.group);
    const std::string bytes = encode_trits(w, each.type);
    const GgufTypeTraits& traits = gguf_traits(each.type);
    REQUIRE(std::ssize(bytes) == traits.bytes_of(w.inputs * w.outputs));
    const std::vector<float> found = decode_gguf(traits.id, bytes, w.trits.size());
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / w.inputs;
      const auto group = static_cast<std::int64_t>(i) % w.inputs / w.group;
      const float scale = w.scales[static_cast<std::size_t>(row * w.groups() + group)];
      differing += found[i] == static_cast<float>(w.trits[i]) * scale ? 0 : 1;
    }
    CHECK(differing == 0);
  }
}

TEST_CASE("gguf blocks: numbers that fp16 cannot hold are refused by name") {
  CHECK_THROWS_WITH_AS(encode_trits(row_of(64, {}, 70000.0f), GgufType::kQ2),
                       "export: 'w' has the scale 70000, which fp16 cannot hold; take --type f32",
                       Error);
  CHECK_THROWS_AS(encode_trits(row_of(64, {}, 0x1p-25f), GgufType::kQ2), Error);
  CHECK_NOTHROW(encode_trits(row_of(64, {}, 0x1.02p-25f), GgufType::kQ2));
  CHECK_NOTHROW(encode_trits(row_of(64, {}, 0.0f), GgufType::kQ2));
  const std::vector<float> many{1.0f, -65505.0f};
  CHECK_THROWS_WITH_AS(
      encode_f16(many, "head"),
      "export: 'head' has the number -65505, which fp16 cannot hold; take --type f32", Error);
}

TEST_CASE("fp16: every number keeps its bits, and others become the nearest, ties the even one") {
  std::int64_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float x = float_of_half(static_cast<std::uint16_t>(bits));
    wrong += half_bits(x) == bits && half_bits(-x) == (bits | 0x8000u) ? 0 : 1;
    if (bits == 0x7BFF) break;  // the largest one has no next
    const float next = float_of_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (x + next) / 2;  // exact: fp32 has 13 more bits
    wrong += half_bits(middle) == bits + bits % 2 ? 0 : 1;
    wrong += half_bits(std::nextafter(middle, 0.0f)) == bits ? 0 : 1;
    wrong += half_bits(std::nextafter(middle, 1e9f)) == bits + 1 ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(half_bits(65519.0f) == 0x7BFF);
  // Values from the definition: 2^-24, 2^-14, 1, 65504.
  CHECK(float_of_half(0x0001) == 0x1p-24f);
  CHECK(float_of_half(0x0400) == 0x1p-14f);
  CHECK(float_of_half(0xBC00) == -1.0f);
  CHECK(float_of_half(0x7BFF) == 65504.0f);
  CHECK(std::isinf(float_of_half(0x7C00)));
  CHECK(std::isnan(float_of_half(0x7E00)));
}

}  // namespace tritgrad::test::test_gguf_blocks
