// Split and companded numbers: every vector kernel against the scalar reference, bit for bit. What
// the numbers mean is checked in tests/test_format_split.cpp and tests/test_format_companded.cpp.
#include <doctest/doctest.h>

#include <type_traits>

#include "tests/kernel_inputs.h"

namespace tritgrad {
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
void compare_split(const KernelTable& table, std::int64_t n, std::int64_t offset,
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
  (reference_kernels().*decode)(out.expected.data(), noise.data(), any.data(), n);
  (table.*decode)(out.actual.data(), noise.data(), any.data(), n);
  REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table.name, " n=", n);
}

TEST_CASE("kernel codecs: split numbers equal the reference") {
  for_each_case([](const KernelTable& table, std::int64_t n, std::int64_t offset) {
    compare_split<std::int8_t>(
        table, n, offset,
        [n](const KernelTable& t, std::uint16_t* value, std::int8_t* correction, const float* in,
            const std::uint16_t* noise) { t.encode_split8(value, correction, in, noise, n); },
        &KernelTable::decode_split8);
    compare_split<std::int16_t>(
        table, n, offset,
        [n](const KernelTable& t, std::uint16_t* value, std::int16_t* correction, const float* in,
            const std::uint16_t*) { t.encode_split16(value, correction, in, n); },
        &KernelTable::decode_split16);
  });
}

// `encode` and `decode` are members of the table.
template <typename Code, typename Encode, typename Decode>
void compare_groups(const KernelTable& table, std::int64_t n, std::int64_t offset, Encode encode,
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
      (reference_kernels().*encode)(codes.expected.data(), scales.expected.data(), in.data(), bits,
                                    scale_bits, n);
      (table.*encode)(codes.actual.data(), scales.actual.data(), in.data(), bits, scale_bits, n);
      REQUIRE_MESSAGE(same_bits(codes.expected, codes.actual, n), table.name, " n=", n);
      REQUIRE_MESSAGE(same_bits(scales.expected, scales.actual, groups), table.name, " n=", n);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    codes.expected[i] = static_cast<Code>(random_u16(kKey, static_cast<std::uint64_t>(n + i)));
  }
  Twins<float> out(n, offset);
  (reference_kernels().*decode)(out.expected.data(), codes.expected.data(), noise.data(), n);
  (table.*decode)(out.actual.data(), codes.expected.data(), noise.data(), n);
  REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n, true), table.name, " n=", n);
}

TEST_CASE("kernel codecs: companded numbers equal the reference") {
  for_each_case([](const KernelTable& table, std::int64_t n, std::int64_t offset) {
    compare_groups<std::int8_t>(table, n, offset, &KernelTable::encode_companded,
                                &KernelTable::decode_companded);
    compare_groups<std::uint8_t>(table, n, offset, &KernelTable::encode_root,
                                 &KernelTable::decode_root);
  });
}

}  // namespace
}  // namespace tritgrad
