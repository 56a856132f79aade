// The codecs of few bits: every table against the reference, and the reference against its
// contract.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_lowbit {
namespace {

constexpr std::int64_t kGroup = 32;

int draw(std::int64_t i, int bound) {
  return static_cast<int>(
      random_below(kKey, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(bound)));
}

// 0: corner values; 1: normal numbers with zeros among them; 2: at the lower end of the floats.
float input(std::int64_t i, int kind) {
  if (kind == 0) return awkward_float(i, 11);
  const float x = i % 5 == 0 ? 0.0f : random_normal(kKey, static_cast<std::uint64_t>(i));
  return kind == 1 ? x : x * 0x1p-120f;
}

Guarded<float> inputs(std::int64_t n, std::int64_t offset, int kind) {
  Guarded<float> x(n, offset);
  for (std::int64_t i = 0; i < n; ++i) x[i] = input(i, kind);
  return x;
}

std::vector<std::uint16_t> all_noise() {
  std::vector<std::uint16_t> noise(65536);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::uint16_t>(i);
  return noise;
}

// The layout in the words of the contract, one element at a time.
std::vector<std::uint8_t> packed_by_hand(const std::int8_t* codes, int bits, std::int64_t n) {
  const std::int64_t h = (n + 1) / 2, w = bits - 4, s = (n * w + 7) / 8;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(h + s));
  const auto add = [&](std::int64_t byte, int value) {
    auto& stored = bytes[static_cast<std::size_t>(byte)];
    stored = static_cast<std::uint8_t>(stored + value);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const int u = codes[i] + (1 << (bits - 1));
    add(i % h, u % 16 << 4 * (i / h));
    if (w > 0) add(h + i % s, u / 16 << w * (i / s));
  }
  return bytes;
}

TEST_CASE("kernels: packed codes lie in stripes, low nibbles first") {
  for (const KernelTables* table : supported_kernels()) {
    // Of blocks all, as stripes end otherwise in each.
    std::vector<std::int64_t> lengths = awkward_lengths();
    for (std::int64_t n = 0; n <= 321; ++n) lengths.push_back(n);
    for (std::int64_t n : lengths) {
      for (int bits : {4, 5, 6}) {
        CAPTURE(table->name);
        CAPTURE(n);
        CAPTURE(bits);
        const int offset = 1 << (bits - 1);
        Guarded<std::int8_t> codes(n, n % 7), again(n, n % 7);
        for (std::int64_t i = 0; i < n; ++i) {
          codes[i] = again[i] = static_cast<std::int8_t>(draw(i, 2 * offset) - offset);
        }
        const std::vector<std::uint8_t> by_hand = packed_by_hand(codes.data(), bits, n);
        const std::int64_t bytes = std::ssize(by_hand);
        Guarded<std::uint8_t> expected(bytes, n % 3), packed(bytes, n % 3);
        std::copy(by_hand.begin(), by_hand.end(), expected.data());
        table->codecs.pack_codes(packed.data(), codes.data(), bits, offset, n);
        REQUIRE(same_bits(expected, packed, bytes));

        for (int max_code : {offset - 1, offset - 3}) {
          for (std::int64_t i = 0; i < n; ++i) {
            const auto code = static_cast<int>(draw(i, 256)) - 128;
            again[i] = static_cast<std::int8_t>(code);
            codes[i] = static_cast<std::int8_t>(std::clamp(code, -max_code, max_code));
          }
          const std::vector<std::uint8_t> clipped = packed_by_hand(codes.data(), bits, n);
          Guarded<std::uint8_t> packed_clipped(bytes, n % 3);
          table->codecs.pack_codes(packed_clipped.data(), again.data(), bits, max_code, n);
          REQUIRE(std::equal(clipped.begin(), clipped.end(), packed_clipped.data()));
        }
        for (std::int64_t i = 0; i < n; ++i) {
          codes[i] = static_cast<std::int8_t>(draw(i, 2 * offset) - offset);
        }
        for (int max_code : {offset - 1, offset - 3}) {
          for (std::int64_t i = 0; i < n; ++i) {
            codes[i] = static_cast<std::int8_t>(std::clamp<int>(codes[i], -max_code, max_code));
            again[i] = 99;
          }
          table->codecs.unpack_codes(again.data(), packed.data(), bits, max_code, n);
          REQUIRE(same_bits(codes, again, n));
        }
      }
    }
  }
}

TEST_CASE("kernels: groups of integers equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    const std::int64_t groups = (n + kGroup - 1) / kGroup;
    Guarded<std::uint16_t> noise = noise_bits(n, offset);
    for (int kind : {0, 1, 2}) {
      Guarded<float> x = inputs(n, offset, kind);
      for (int max_code : {7, 127}) {
        for (bool stochastic : {false, true}) {
          const std::uint16_t* bits = stochastic ? noise.data() : nullptr;
          Guarded<std::int8_t> expected(n, offset), actual(n, offset);
          Guarded<std::uint16_t> expected_scales(groups, offset), actual_scales(groups, offset);
          reference_kernels().codecs.encode_groups(expected.data(), expected_scales.data(),
                                                   x.data(), max_code, bits, n);
          table.codecs.encode_groups(actual.data(), actual_scales.data(), x.data(), max_code, bits,
                                     n);
          REQUIRE_MESSAGE(same_bits(expected, actual, n), table.name, " n=", n);
          REQUIRE_MESSAGE(same_bits(expected_scales, actual_scales, groups), table.name, " n=", n);

          for (std::int64_t i = 0; i < n; i += 3) expected[i] = static_cast<std::int8_t>(i * 37);
          Guarded<float> expected_values(n, offset), values(n, offset);
          reference_kernels().codecs.decode_groups(expected_values.data(), expected.data(),
                                                   expected_scales.data(), max_code, n);
          table.codecs.decode_groups(values.data(), expected.data(), expected_scales.data(),
                                     max_code, n);
          REQUIRE_MESSAGE(same_bits(expected_values, values, n), table.name, " n=", n);
        }
      }
    }
  });
}

TEST_CASE("kernels: fp8 equals the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<std::uint16_t> noise = noise_bits(n, offset);
    for (int kind : {0, 1, 2}) {
      Guarded<float> x = inputs(n, offset, kind);
      for (bool stochastic : {false, true}) {
        const std::uint16_t* bits = stochastic ? noise.data() : nullptr;
        Guarded<std::uint8_t> expected(n, offset), actual(n, offset);
        std::uint16_t expected_scale = 1, scale = 2;
        reference_kernels().codecs.encode_fp8(expected.data(), &expected_scale, x.data(), bits, n);
        table.codecs.encode_fp8(actual.data(), &scale, x.data(), bits, n);
        REQUIRE_MESSAGE(same_bits(expected, actual, n), table.name, " n=", n);
        REQUIRE_MESSAGE(scale == expected_scale, table.name, " n=", n);

        for (std::int64_t i = 0; i < n; i += 3) expected[i] = static_cast<std::uint8_t>(i * 37);
        Guarded<float> expected_values(n, offset), values(n, offset);
        reference_kernels().codecs.decode_fp8(expected_values.data(), expected.data(), scale, n);
        table.codecs.decode_fp8(values.data(), expected.data(), scale, n);
        REQUIRE_MESSAGE(same_bits(expected_values, values, n, true), table.name, " n=", n);
      }
    }
  });
}

double decoded_scale(std::uint16_t scale) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{scale} << 16));
}

TEST_CASE("kernels: groups take the largest magnitude for the top code and round the rest") {
  for (int max_code : {7, 127}) {
    const auto top = static_cast<float>(max_code);
    std::array<std::int8_t, 4> codes{};
    std::uint16_t scale = 0;
    const auto encode = [&](const std::array<float, 4>& x) {
      reference_kernels().codecs.encode_groups(codes.data(), &scale, x.data(), max_code, nullptr,
                                               4);
    };
    using Codes = std::array<std::int8_t, 4>;
    const auto most = static_cast<std::int8_t>(max_code);
    const auto least = static_cast<std::int8_t>(-max_code);
    encode({-top, 0.5f, 1.5f, -2.5f});
    CHECK((scale == 0x3F80 && codes == Codes{least, 0, 2, -2}));
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    encode({kNan, top, -0.0f, kNan});
    CHECK((scale == 0x3F80 && codes == Codes{0, most, 0, 0}));
    encode({kInf, -kInf, 1.0f, kNan});
    CHECK(codes == Codes{most, least, 0, 0});
    CHECK(decoded_scale(scale) * top <= double{std::numeric_limits<float>::max()});
    CHECK(decoded_scale(scale) * top * (1.0 + 1.0 / 128) > 3.4e38);
    const float least_group = top * std::numeric_limits<float>::min();
    encode({least_group, 0.0f, 0.0f, -least_group});
    CHECK((scale == 0x0080 && codes == Codes{most, 0, 0, least}));
    encode({std::nextafter(least_group, 0.0f), 1e-40f, 0.0f, 0.0f});
    CHECK((scale == 0 && codes == Codes{}));
  }
}

TEST_CASE("kernels: for every mantissa of the scale the top code is exact and encoding is stable") {
  for (int max_code : {7, 127}) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = std::uint32_t{0x3F800000} + static_cast<std::uint32_t>(i) * 128u;
      const std::array<float, 3> x = {std::bit_cast<float>(bits), -0.37f, 0.81f};
      std::array<std::int8_t, 3> codes{}, again{};
      std::array<float, 3> values{};
      std::uint16_t scale = 0, scale_again = 0;
      reference_kernels().codecs.encode_groups(codes.data(), &scale, x.data(), max_code, nullptr,
                                               3);
      REQUIRE(codes[0] == max_code);
      reference_kernels().codecs.decode_groups(values.data(), codes.data(), &scale, max_code, 3);
      reference_kernels().codecs.encode_groups(again.data(), &scale_again, values.data(), max_code,
                                               nullptr, 3);
      REQUIRE((codes == again && scale == scale_again));
      // Rounding up, the largest element is at most the top code, so that nothing is clipped (the
      // quotient in fp32 may err by 2^-24).
      const std::array<std::uint16_t, 3> noise{};
      reference_kernels().codecs.encode_groups(again.data(), &scale_again, x.data(), max_code,
                                               noise.data(), 3);
      REQUIRE(double{x[0]} <= max_code * decoded_scale(scale_again) * (1.0 + 0x1p-23));
      REQUIRE(scale_again - scale >= 0);
      REQUIRE(scale_again - scale <= 1);
    }
  }
}

TEST_CASE("kernels: stochastic integers round up exactly as often as the fraction says") {
  const std::vector<std::uint16_t> noise = all_noise();
  for (int max_code : {7, 127}) {
    for (float level : {0.25f, -0.25f, 2.625f, -6.5f, 3.0f, -7.0f}) {
      std::vector<float> x(65536, level);
      for (std::size_t i = 0; i < x.size(); i += kGroup) x[i] = static_cast<float>(max_code);
      std::vector<std::int8_t> codes(x.size());
      std::vector<std::uint16_t> scales(x.size() / kGroup);
      reference_kernels().codecs.encode_groups(codes.data(), scales.data(), x.data(), max_code,
                                               noise.data(), std::ssize(x));
      // Noise is equidistant, and every 32nd value went to the element that sets the scale: each
      // of the others misses a 32nd of its quarter or eighth alike, up to one noise value.
      const auto down = static_cast<std::int8_t>(std::floor(level));
      std::int64_t up = 0, all = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % kGroup == 0) {
          REQUIRE(codes[i] == max_code);
          continue;
        }
        REQUIRE((codes[i] == down || codes[i] == down + 1));
        up += codes[i] != down;
        ++all;
      }
      const double expected = static_cast<double>(all) * double{level - std::floor(level)};
      CHECK(std::abs(static_cast<double>(up) - expected) <= 1.0);
    }
  }
}

// ---- fp8
// -----------------------------------------------------------------------------------------

double fp8_value(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 0x7F) == 0x7F) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code < 128 ? magnitude : -magnitude;
}

// Codes with the scale 1: the first element is the largest number.
std::vector<std::uint8_t> fp8_codes(std::vector<float> x,
                                    const std::vector<std::uint16_t>* noise = nullptr) {
  x.insert(x.begin(), 448.0f);
  std::vector<std::uint16_t> bits(1, 0);
  if (noise != nullptr) bits.insert(bits.end(), noise->begin(), noise->end());
  std::vector<std::uint8_t> codes(x.size());
  std::uint16_t scale = 0;
  reference_kernels().codecs.encode_fp8(codes.data(), &scale, x.data(),
                                        noise == nullptr ? nullptr : bits.data(), std::ssize(x));
  REQUIRE((scale == 0x3F80 && codes[0] == 0x7E));
  codes.erase(codes.begin());
  return codes;
}

TEST_CASE("kernels: all 256 codes of fp8 are the numbers of e4m3fn, and come back") {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
  std::vector<float> values(256);
  reference_kernels().codecs.decode_fp8(values.data(), codes.data(), 0x3F80, 256);
  for (int i = 0; i < 256; ++i) {
    CAPTURE(i);
    const double value = static_cast<double>(values[static_cast<std::size_t>(i)]);
    if (i % 128 == 127) {
      CHECK(std::isnan(value));
    } else {
      CHECK(value == fp8_value(i));
      CHECK(std::signbit(value) == (i >= 128));
    }
  }
  CHECK(fp8_codes(values) == codes);
  for (int bits : {0, 0x8000, 0xFFFF}) {
    const std::vector<std::uint16_t> noise(256, static_cast<std::uint16_t>(bits));
    CHECK(fp8_codes(values, &noise) == codes);
  }
}

TEST_CASE("kernels: fp8 rounds to the nearest number, ties to even") {
  for (int code = 0; code < 0x7E; ++code) {
    CAPTURE(code);
    const double low = fp8_value(code), high = fp8_value(code + 1);
    const auto tie = static_cast<float>(0.5 * (low + high));  // exact: one bit more
    const auto lower = static_cast<std::uint8_t>(code), upper = static_cast<std::uint8_t>(code + 1);
    const std::vector<float> x = {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, 449.0f),
                                  std::nextafter(-tie, 0.0f)};
    const std::vector<std::uint8_t> expected = {lower, code % 2 == 0 ? lower : upper, upper,
                                                static_cast<std::uint8_t>(lower | 0x80)};
    CHECK(fp8_codes(x) == expected);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  CHECK(fp8_codes({kNan, -kNan, 1e-40f}) == std::vector<std::uint8_t>{0x7F, 0xFF, 0});
}

TEST_CASE("kernels: stochastic fp8 rounds up exactly as often as the dropped bits say") {
  const std::vector<std::uint16_t> noise = all_noise();
  // Between all neighbours: subnormals, the seam to the normal numbers, and across binades.
  for (int code = 0; code < 0x7E; ++code) {
    CAPTURE(code);
    const double low = fp8_value(code), high = fp8_value(code + 1);
    for (int sixteenths : {0, 1, 5, 15}) {
      const auto x = static_cast<float>(low + (high - low) * sixteenths / 16.0);
      const std::vector<std::uint8_t> codes = fp8_codes(std::vector<float>(65536, x), &noise);
      const auto up = std::count(codes.begin(), codes.end(), code + 1);
      REQUIRE(up == 4096 * sixteenths);
      REQUIRE(up + std::count(codes.begin(), codes.end(), code) == 65536);
    }
  }
}

TEST_CASE("kernels: the scale of fp8 spares infinities and vanishes with the smallest numbers") {
  std::array<std::uint8_t, 4> codes{};
  std::array<float, 4> values{};
  std::uint16_t scale = 0;
  const auto encode = [&](const std::array<float, 4>& x) {
    reference_kernels().codecs.encode_fp8(codes.data(), &scale, x.data(), nullptr, 4);
    reference_kernels().codecs.decode_fp8(values.data(), codes.data(), scale, 4);
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  encode({kInf, -kInf, 1.0f, -std::numeric_limits<float>::max()});
  CHECK(codes == std::array<std::uint8_t, 4>{0x7E, 0xFE, 0, 0xFE});
  CHECK((std::isfinite(values[0]) && values[0] > 3.37e38f));
  encode({1e-37f, -1e-38f, 0.0f, std::numeric_limits<float>::quiet_NaN()});
  CHECK((scale == 0 && values[0] == 0.0f && values[1] == 0.0f && std::isnan(values[3])));
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_lowbit
