// Split and companded numbers: every vector kernel against the scalar reference, bit for bit. What
// the numbers mean is checked in tests/engine/formats/test_format_split.cpp and
// tests/engine/formats/test_format_companded.cpp.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_codecs {
namespace {

// Random normal numbers whose group of 32 has a size of its own, from subnormal to huge; a third of
// the groups holds corner values, which may turn it into NaN.
float grouped_float(std::int64_t i, std::uint32_t stream, bool is_signed) {
  const std::int64_t group = i / kCompandedGroup;
  const RandomKey key{.seed = 8, .stream = stream, .step = 0};
  const int exponent =
      static_cast<int>(random_bits(key, static_cast<std::uint64_t>(group) + 4000003) % 268) - 142;
  const float x = group % 3 == 2
                      ? awkward_float(i, stream)
                      : std::ldexp(random_normal(key, static_cast<std::uint64_t>(i)), exponent);
  return is_signed ? x : std::fabs(x);
}

// `encode(table, value, correction, in, noise, n)`; `decode` is a member of the table.
template <typename Code, typename Encode, typename Decode>
void compare_split(const KernelTables& table, std::int64_t n, std::int64_t offset,
                   const Encode& encode, Decode decode) {
  Guarded<float> in = floats(n, offset, 11);
  Guarded<std::uint16_t> noise = noise_bits(n, offset);
  Twins<std::uint16_t> value(n, offset);
  Twins<Code> correction(n, offset);
  for (bool stochastic : {false, true}) {
    const std::uint16_t* bits = stochastic ? noise.data() : nullptr;
    encode(reference_kernels(), value.expected.data(), correction.expected.data(), in.data(), bits);
    encode(table, value.actual.data(), correction.actual.data(), in.data(), bits);
    REQUIRE_MESSAGE(same_bits(value.expected, value.actual, n), table.name, " n=", n);
    REQUIRE_MESSAGE(same_bits(correction.expected, correction.actual, n), table.name, " n=", n);
  }
  // Any bits may be read.
  Guarded<Code> any(n, offset);
  for (std::int64_t i = 0; i < n; ++i) {
    any[i] = static_cast<Code>(random_u16(kKey, static_cast<std::uint64_t>(n + i)));
  }
  Twins<float> out(n, offset);
  (reference_kernels().codecs.*decode)(out.expected.data(), noise.data(), any.data(), n);
  (table.codecs.*decode)(out.actual.data(), noise.data(), any.data(), n);
  REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table.name, " n=", n);
}

TEST_CASE("kernel codecs: split numbers equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    compare_split<std::int8_t>(
        table, n, offset,
        [n](const KernelTables& t, std::uint16_t* value, std::int8_t* correction, const float* in,
            const std::uint16_t* noise) {
          t.codecs.encode_split8(value, correction, in, noise, n);
        },
        &CodecKernels::decode_split8);
    compare_split<std::int16_t>(
        table, n, offset,
        [n](const KernelTables& t, std::uint16_t* value, std::int16_t* correction, const float* in,
            const std::uint16_t*) { t.codecs.encode_split16(value, correction, in, n); },
        &CodecKernels::decode_split16);
  });
}

// Whether numbers are ordinary must not depend on those beside them, of whatever sign.
TEST_CASE("kernel codecs: split numbers near the largest beside large ones of the other sign") {
  const std::int64_t n = 128;
  for (const KernelTables* table : vector_kernels()) {
    for (const float large : {-1.7e38f, 1.7e38f, -3.3e38f, -1e30f}) {
      for (const std::uint32_t bits : {0x7F7F7FFFu, 0x7F7FFFFFu, 0x7F7F0000u, 0x7F7EFFFFu}) {
        Guarded<float> in(n, 0);
        for (std::int64_t i = 0; i < n; ++i) in[i] = i % 32 < 16 ? large : 1.0f;
        for (std::int64_t i = 8; i < n; i += 24) in[i] = std::bit_cast<float>(bits);
        Twins<std::uint16_t> value(n, 0);
        Twins<std::int8_t> correction(n, 0);
        reference_kernels().codecs.encode_split8(value.expected.data(), correction.expected.data(),
                                                 in.data(), nullptr, n);
        table->codecs.encode_split8(value.actual.data(), correction.actual.data(), in.data(),
                                    nullptr, n);
        CAPTURE(table->name);
        CAPTURE(large);
        CHECK(same_bits(value.expected, value.actual, n));
        CHECK(same_bits(correction.expected, correction.actual, n));
        // Values that infinities have, with corrections that none has.
        for (std::int64_t i = 8; i < n; i += 24) {
          value.expected[i] = 0x7F80;
          correction.expected[i] = static_cast<std::int8_t>(-127 + i);
        }
        Twins<float> out(n, 0);
        reference_kernels().codecs.decode_split8(out.expected.data(), value.expected.data(),
                                                 correction.expected.data(), n);
        table->codecs.decode_split8(out.actual.data(), value.expected.data(),
                                    correction.expected.data(), n);
        CHECK(same_bits(out.expected, out.actual, n));
      }
    }
  }
}

// `encode` and `decode` are members of the table.
template <typename Code, typename Encode, typename Decode>
void compare_groups(const KernelTables& table, std::int64_t n, std::int64_t offset, Encode encode,
                    Decode decode) {
  const std::int64_t groups = (n + kCompandedGroup - 1) / kCompandedGroup;
  Guarded<std::uint16_t> noise = noise_bits(n, offset);
  Guarded<std::uint16_t> scale_noise = noise_bits(groups, offset);
  Twins<Code> codes(n, offset);
  Twins<std::uint16_t> scales(groups, offset);
  for (std::uint32_t stream = 0; stream < 4; ++stream) {
    Guarded<float> in(n, offset);
    for (std::int64_t i = 0; i < n; ++i) {
      in[i] = grouped_float(i, stream, std::is_signed_v<Code>);
    }
    for (bool stochastic : {false, true}) {
      const std::uint16_t* bits = stochastic ? noise.data() : nullptr;
      const std::uint16_t* scale_bits = stochastic ? scale_noise.data() : nullptr;
      (reference_kernels().codecs.*encode)(codes.expected.data(), scales.expected.data(), in.data(),
                                           bits, scale_bits, n);
      (table.codecs.*encode)(codes.actual.data(), scales.actual.data(), in.data(), bits, scale_bits,
                             n);
      REQUIRE_MESSAGE(same_bits(codes.expected, codes.actual, n), table.name, " n=", n);
      REQUIRE_MESSAGE(same_bits(scales.expected, scales.actual, groups), table.name, " n=", n);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    codes.expected[i] = static_cast<Code>(random_u16(kKey, static_cast<std::uint64_t>(n + i)));
  }
  Twins<float> out(n, offset);
  (reference_kernels().codecs.*decode)(out.expected.data(), codes.expected.data(), noise.data(), n);
  (table.codecs.*decode)(out.actual.data(), codes.expected.data(), noise.data(), n);
  REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n, true), table.name, " n=", n);
}

TEST_CASE("kernel codecs: companded numbers equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    compare_groups<std::int8_t>(table, n, offset, &CodecKernels::encode_companded,
                                &CodecKernels::decode_companded);
    compare_groups<std::uint8_t>(table, n, offset, &CodecKernels::encode_root,
                                 &CodecKernels::decode_root);
  });
}

// Vector kernels take ordinary numbers a shorter way. What follows is ordinary throughout, but for
// a single number where that is said.

// Every mantissa around a few bf16 numbers, both signs; the last of `uppers` saturates in part.
TEST_CASE("kernel codecs: split8 of ordinary numbers equals the reference") {
  std::vector<float> in;
  for (const std::uint32_t upper :
       {0x0001u, 0x007Fu, 0x0080u, 0x3F7Fu, 0x3F80u, 0x4123u, 0x7F7Fu}) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      for (std::uint32_t low = 0; low < 0x10000; ++low) {
        in.push_back(std::bit_cast<float>(sign | upper << 16 | low));
      }
    }
  }
  const auto n = static_cast<std::int64_t>(in.size());
  for (const KernelTables* table : vector_kernels()) {
    Twins<std::uint16_t> value(n, 0);
    Twins<std::int8_t> correction(n, 0);
    Twins<float> out(n, 0);
    reference_kernels().codecs.encode_split8(value.expected.data(), correction.expected.data(),
                                             in.data(), nullptr, n);
    table->codecs.encode_split8(value.actual.data(), correction.actual.data(), in.data(), nullptr,
                                n);
    CHECK_MESSAGE(same_bits(value.expected, value.actual, n), table->name);
    CHECK_MESSAGE(same_bits(correction.expected, correction.actual, n), table->name);
    // Every correction with every sign, beside ordinary values.
    for (std::int64_t i = 0; i < n; ++i) correction.actual[i] = static_cast<std::int8_t>(i);
    reference_kernels().codecs.decode_split8(out.expected.data(), value.expected.data(),
                                             correction.actual.data(), n);
    table->codecs.decode_split8(out.actual.data(), value.expected.data(), correction.actual.data(),
                                n);
    CHECK_MESSAGE(same_bits(out.expected, out.actual, n), table->name);
  }
}

TEST_CASE("kernel codecs: one odd number among ordinary ones, in every place") {
  constexpr std::int64_t n = 2112;
  constexpr float kOdd[] = {0.0f,
                            -0.0f,
                            -2.0f,
                            1e-44f,
                            3.4e38f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for (const KernelTables* table : vector_kernels()) {
    for (std::int64_t place = 0; place < n; place += 7) {
      std::vector<float> in(n);
      for (std::int64_t i = 0; i < n; ++i) {
        in[static_cast<std::size_t>(i)] =
            1.0f + random_uniform(kKey, static_cast<std::uint64_t>(i));
      }
      in[static_cast<std::size_t>(place)] = kOdd[place / 7 % std::ssize(kOdd)];
      Twins<std::uint16_t> words(n, 0);
      Twins<std::int8_t> codes(n, 0);
      Twins<std::uint8_t> roots(n, 0);
      Twins<float> out(n, 0);
      const auto compare = [&](auto& bytes, std::int64_t count, auto encode, auto decode) {
        encode(reference_kernels(), words.expected.data(), bytes.expected.data());
        encode(*table, words.actual.data(), bytes.actual.data());
        REQUIRE_MESSAGE(same_bits(words.expected, words.actual, count), table->name, " ", place);
        REQUIRE_MESSAGE(same_bits(bytes.expected, bytes.actual, n), table->name, " ", place);
        decode(reference_kernels(), out.expected.data());
        decode(*table, out.actual.data());
        REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n, true), table->name, " ", place);
      };
      compare(
          codes, n,
          [&](const KernelTables& t, std::uint16_t* value, std::int8_t* code) {
            t.codecs.encode_split8(value, code, in.data(), nullptr, n);
          },
          [&](const KernelTables& t, float* to) {
            t.codecs.decode_split8(to, words.expected.data(), codes.expected.data(), n);
          });
      compare(
          codes, n / kCompandedGroup,
          [&](const KernelTables& t, std::uint16_t* scale, std::int8_t* code) {
            t.codecs.encode_companded(code, scale, in.data(), nullptr, nullptr, n);
          },
          [&](const KernelTables& t, float* to) {
            t.codecs.decode_companded(to, codes.expected.data(), words.expected.data(), n);
          });
      compare(
          roots, n / kCompandedGroup,
          [&](const KernelTables& t, std::uint16_t* scale, std::uint8_t* code) {
            t.codecs.encode_root(code, scale, in.data(), nullptr, nullptr, n);
          },
          [&](const KernelTables& t, float* to) {
            t.codecs.decode_root(to, roots.expected.data(), words.expected.data(), n);
          });
    }
  }
}

// What share of the scale a code means, and the lowest and the highest code of numbers above zero.
struct Curve {
  double (*share_of)(double code);
  int lowest, top;
};
constexpr Curve kSoftsign{[](double code) { return code / (254.0 - code); }, 0, 127};
constexpr Curve kRoot{[](double code) { return code * code / 65025.0; }, 1, 255};

// The 2 * kReach + 1 numbers around every place where the code changes; and around half a code
// where the lowest is 1.
//
// With the scale 1 they prove all codes equal: the code is a function of the share alone, which
// then is the number itself. Kernels know the code, before it is rounded, to a few units in its
// last place, and it moves by half a unit or more for each of the share; further away than kReach
// no share can be rounded the other way.
constexpr int kReach = 128;
std::vector<float> around_every_edge(float largest, const Curve& curve) {
  const std::uint32_t top = std::bit_cast<std::uint32_t>(largest);
  const auto scale = std::bit_cast<float>((top + 0x3FFFu + (top >> 15 & 1u)) & 0xFFFF8000u);
  std::vector<float> numbers;
  for (int code = 0; code < curve.top; ++code) {
    const float edge = scale * static_cast<float>(curve.share_of(code + 0.5));
    const auto bits = static_cast<int>(std::bit_cast<std::uint32_t>(edge));
    for (int step = -kReach; step <= kReach; ++step) {
      numbers.push_back(std::bit_cast<float>(bits + step));
    }
  }
  return numbers;
}

// The reference has one code at the begin of each stretch of such numbers, the next one at its end.
template <typename Code, typename Encode>
void check_edges(float largest, const Curve& curve, Encode encode) {
  const std::vector<float> numbers = around_every_edge(largest, curve);
  constexpr std::size_t kWidth = 2 * kReach + 1;
  for (int code = 0; code < curve.top; ++code) {
    CAPTURE(largest);
    CAPTURE(code);
    const std::size_t begin = static_cast<std::size_t>(code) * kWidth;
    const float in[] = {largest, numbers[begin], numbers[begin + kWidth - 1]};
    Code codes[3];
    std::uint16_t scale;
    (reference_kernels().codecs.*encode)(codes, &scale, in, nullptr, nullptr, 3);
    CHECK(codes[0] == curve.top);
    CHECK(codes[1] == std::max(code, curve.lowest));
    CHECK(codes[2] == code + 1);
  }
}

// Groups under one largest number. Each other number is in both halves of a group, as kernels treat
// vectors in turns.
std::vector<float> in_groups(float largest, const std::vector<float>& numbers) {
  constexpr std::int64_t half = kCompandedGroup / 2;
  std::vector<float> in;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // The first of either half is the group's largest.
    if (in.size() % half == 0) in.push_back(largest);
    in.push_back(numbers[i]);
    if (in.size() % half != 0 && i + 1 < numbers.size()) continue;
    const std::size_t begin = (in.size() - 1) / half * half;
    in.resize(begin + half, largest);
    in.insert(in.end(), in.begin() + static_cast<std::ptrdiff_t>(begin), in.end());
  }
  return in;
}

template <typename Code, typename Encode>
void compare_codes(const std::vector<float>& in, Encode encode) {
  const auto n = static_cast<std::int64_t>(in.size());
  for (const KernelTables* table : vector_kernels()) {
    Twins<Code> codes(n, 0);
    Twins<std::uint16_t> scales(n / kCompandedGroup, 0);
    (reference_kernels().codecs.*encode)(codes.expected.data(), scales.expected.data(), in.data(),
                                         nullptr, nullptr, n);
    (table->codecs.*encode)(codes.actual.data(), scales.actual.data(), in.data(), nullptr, nullptr,
                            n);
    CHECK_MESSAGE(same_bits(codes.expected, codes.actual, n), table->name);
    CHECK_MESSAGE(same_bits(scales.expected, scales.actual, n / kCompandedGroup), table->name);
  }
}

TEST_CASE("kernel codecs: companded codes change at the same numbers as in the reference") {
  // Exact scales; those rounded down by half a unit (the most), up by nearly half and by nearly
  // nothing; and large and small ones. A unit of scales is 2^-8 here.
  constexpr float kLeast = 0x1p-23f;
  for (const float largest : {1.0f, 1.0f + 0x1p-9f, 1.0f + 0x1p-9f + kLeast,
                              1.0f + 0x1p-8f - kLeast, 1.7f, 3.1e37f, 5e-29f}) {
    check_edges<std::int8_t>(largest, kSoftsign, &CodecKernels::encode_companded);
    check_edges<std::uint8_t>(largest, kRoot, &CodecKernels::encode_root);
    std::vector<float> in = in_groups(largest, around_every_edge(largest, kSoftsign));
    compare_codes<std::int8_t>(in, &CodecKernels::encode_companded);
    for (std::size_t i = 0; i < in.size(); i += 3) in[i] = -in[i];
    compare_codes<std::int8_t>(in, &CodecKernels::encode_companded);
    in = in_groups(largest, around_every_edge(largest, kRoot));
    compare_codes<std::uint8_t>(in, &CodecKernels::encode_root);
  }
}

TEST_CASE(
    "kernel codecs: companded numbers are decoded as in the reference, whatever their place") {
  constexpr std::int64_t n = 256 * kCompandedGroup;
  Guarded<std::uint8_t> codes(n, 0);
  Guarded<std::uint16_t> scales(256, 0);
  for (std::int64_t g = 0; g < 256; ++g) {
    scales[g] = static_cast<std::uint16_t>(0x7F00 + g);  // every mantissa, from 1 to 2
    for (std::int64_t i = 0; i < kCompandedGroup; ++i) {
      codes[g * kCompandedGroup + i] = static_cast<std::uint8_t>(g + i);
    }
  }
  const auto* signed_codes = reinterpret_cast<const std::int8_t*>(codes.data());
  for (const KernelTables* table : vector_kernels()) {
    Twins<float> out(n, 0);
    reference_kernels().codecs.decode_companded(out.expected.data(), signed_codes, scales.data(),
                                                n);
    table->codecs.decode_companded(out.actual.data(), signed_codes, scales.data(), n);
    CHECK_MESSAGE(same_bits(out.expected, out.actual, n), table->name);
    reference_kernels().codecs.decode_root(out.expected.data(), codes.data(), scales.data(), n);
    table->codecs.decode_root(out.actual.data(), codes.data(), scales.data(), n);
    CHECK_MESSAGE(same_bits(out.expected, out.actual, n), table->name);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_codecs
