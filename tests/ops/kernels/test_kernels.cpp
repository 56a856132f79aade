// Every vector kernel against the scalar reference, bit for bit, and the reference against its
// contract.
#include <doctest/doctest.h>

#include <array>

#include "engine/formats/format.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernels {
namespace {

std::int8_t random_trit(std::int64_t i) {
  return static_cast<std::int8_t>(
      static_cast<int>(random_bits(kKey, static_cast<std::uint64_t>(i)) % 3) - 1);
}

TEST_CASE("kernels: random_u16 equals the scalar function on every table") {
  for (const KernelTables* table : supported_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      // The third start carries into the upper word of the counter in the middle of the output.
      for (std::uint64_t first : {0ull, 8ull, (1ull << 35) - 64, 1ull << 60}) {
        Twins<std::uint16_t> out(n, n % 8, [&](std::int64_t i) {
          return random_u16(kKey, first + static_cast<std::uint64_t>(i));
        });
        table->codecs.random_u16(out.actual.data(), n, kKey, first);
        REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table->name, " n=", n);
      }
    }
  }
}

TEST_CASE("kernels: packed trits lie in stripes, the first element in the lowest digit") {
  for (const KernelTables* table : supported_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      const std::int64_t stripe = (n + 4) / 5;
      Twins<std::uint8_t> packed(stripe, n % 3);
      Twins<std::int8_t> trits(n, n % 7, random_trit);
      for (std::int64_t i = 0; i < stripe; ++i) {
        int byte = 0, power = 1;
        for (std::int64_t k = 0; k < 5; ++k, power *= 3) {
          byte += ((k * stripe + i < n ? trits.expected[k * stripe + i] : 0) + 1) * power;
        }
        packed.expected[i] = static_cast<std::uint8_t>(byte);
      }
      table->codecs.encode_trits(packed.actual.data(), trits.expected.data(), n);
      REQUIRE_MESSAGE(same_bits(packed.expected, packed.actual, stripe), table->name, " n=", n);
      for (std::int64_t i = 0; i < n; ++i) trits.actual[i] = 99;
      table->codecs.decode_trits(trits.actual.data(), 0, packed.expected.data(), 0, 1, n);
      REQUIRE_MESSAGE(same_bits(trits.expected, trits.actual, n), table->name, " n=", n);
    }
  }
}

TEST_CASE("kernels: rows of packed trits are decoded each by itself, and nothing between them") {
  constexpr std::int64_t kRows = 3, kGap = 2;
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (std::int64_t n : awkward_lengths()) {
      CAPTURE(n);
      const std::int64_t ld = n + kGap, ld_packed = (n + 4) / 5 + 1;
      Guarded<std::uint8_t> packed(kRows * ld_packed, n % 3);
      for (std::int64_t i = 0; i < kRows * ld_packed; ++i) {
        packed[i] = static_cast<std::uint8_t>(37 * i % 256);
      }
      Twins<std::int8_t> trits(kRows * ld, n % 7, [](std::int64_t) { return std::int8_t{99}; });
      for (std::int64_t r = 0; r < kRows; ++r) {
        reference_kernels().codecs.decode_trits(trits.expected.data() + r * ld, 0,
                                                packed.data() + r * ld_packed, 0, 1, n);
      }
      table->codecs.decode_trits(trits.actual.data(), ld, packed.data(), ld_packed, kRows, n);
      REQUIRE(same_bits(trits.expected, trits.actual, kRows * ld));
    }
  }
}

TEST_CASE(
    "kernels: every byte of five trits survives decode and encode; above 242 it reads as 242") {
  for (const KernelTables* table : supported_kernels()) {
    std::array<std::uint8_t, 256> bytes{}, again{};
    std::array<std::int8_t, 5 * 256> trits{};
    for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
    table->codecs.decode_trits(trits.data(), 0, bytes.data(), 0, 1, 5 * 256);
    table->codecs.encode_trits(again.data(), trits.data(), 5 * 256);
    for (std::size_t i = 0; i < 256; ++i) REQUIRE(again[i] == (i < 243 ? i : 242));
    for (std::int8_t trit : trits) REQUIRE((trit >= -1 && trit <= 1));
  }
}

TEST_CASE("kernels: what a byte of trits decodes to does not depend on its neighbour") {
  constexpr int kBytes = 64;
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (int other = 0; other < 256; ++other) {
      for (int first = 0; first < 256; first += kBytes / 2) {
        std::array<std::uint8_t, kBytes> bytes;
        for (int i = 0; i < kBytes; ++i) {
          bytes[static_cast<std::size_t>(i)] =
              static_cast<std::uint8_t>(i % 2 == 0 ? other : first + i / 2);
        }
        std::array<std::int8_t, 5 * kBytes> expected, actual;
        reference_kernels().codecs.decode_trits(expected.data(), 0, bytes.data(), 0, 1, 5 * kBytes);
        table->codecs.decode_trits(actual.data(), 0, bytes.data(), 0, 1, 5 * kBytes);
        REQUIRE(actual == expected);
      }
    }
  }
}

TEST_CASE("kernels: trits_to_float and latent_to_float equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Twins<float> out(n, offset);
    Guarded<std::int8_t> codes(n, offset);
    for (std::int64_t i = 0; i < n; ++i) codes[i] = static_cast<std::int8_t>(i * 37 % 256 - 128);
    reference_kernels().codecs.trits_to_float(out.expected.data(), codes.data(), n);
    table.codecs.trits_to_float(out.actual.data(), codes.data(), n);
    REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table.name, " n=", n);
    for (int threshold : {0, 42, 126}) {
      reference_kernels().codecs.latent_to_float(out.expected.data(), codes.data(), threshold, n);
      table.codecs.latent_to_float(out.actual.data(), codes.data(), threshold, n);
      REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table.name, " n=", n);
    }
  });
  std::array<float, 5> out{};
  const std::array<std::int8_t, 5> codes = {-43, -42, 0, 42, 43};
  reference_kernels().codecs.latent_to_float(out.data(), codes.data(), 42, 5);
  CHECK(out == std::array<float, 5>{-1.0f, 0.0f, 0.0f, 0.0f, 1.0f});
}

TEST_CASE("kernels: all bf16 patterns are the upper halves of floats, and come back") {
  constexpr std::int64_t n = 65536;
  std::vector<std::uint16_t> codes(n), again(n);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint16_t>(i);
  for (const KernelTables* table : supported_kernels()) {
    table->codecs.bf16_to_float(values.data(), codes.data(), n);
    for (const std::uint16_t* noise : {static_cast<const std::uint16_t*>(nullptr),
                                       static_cast<const std::uint16_t*>(codes.data())}) {
      table->codecs.float_to_bf16(again.data(), values.data(), noise, n);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(std::bit_cast<std::uint32_t>(values[i]) == i << 16);
        const bool is_nan = (i & 0x7FFF) > 0x7F80;
        REQUIRE(again[i] == (is_nan ? i | 0x40 : i));
      }
    }
  }
}

TEST_CASE(
    "kernels: float_to_bf16 rounds ties to even, keeps NaN, and rounds up by chance exactly") {
  const auto code = [](std::uint32_t bits, const std::uint16_t* noise) {
    const auto value = std::bit_cast<float>(bits);
    std::uint16_t out = 0;
    reference_kernels().codecs.float_to_bf16(&out, &value, noise, 1);
    return out;
  };
  CHECK(code(0x3F808000, nullptr) == 0x3F80);
  CHECK(code(0x3F818000, nullptr) == 0x3F82);
  CHECK(code(0x3F808001, nullptr) == 0x3F81);
  CHECK(code(0xBF807FFF, nullptr) == 0xBF80);
  CHECK(code(0x7F7FFFFF, nullptr) == 0x7F80);
  const std::uint16_t most = 0xFFFF;
  CHECK(code(0x7F800000, &most) == 0x7F80);
  CHECK((code(0x7F800001, nullptr) == 0x7FC0 && code(0xFFFFFFFF, &most) == 0xFFFF));
  // Of the 65536 noise values as many round up as the dropped bits say: unbiased, without
  // tolerance.
  int up = 0;
  for (int i = 0; i < 65536; ++i) {
    const auto noise = static_cast<std::uint16_t>(i);
    up += code(0x3F801234, &noise) == 0x3F81;
  }
  CHECK(up == 0x1234);
}

TEST_CASE("kernels: bf16 codecs equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> in = floats(n, offset, 1);
    Guarded<std::uint16_t> noise = noise_bits(n, offset);
    Twins<std::uint16_t> out(n, offset);
    for (bool stochastic : {false, true}) {
      const std::uint16_t* bits = stochastic ? noise.data() : nullptr;
      reference_kernels().codecs.float_to_bf16(out.expected.data(), in.data(), bits, n);
      table.codecs.float_to_bf16(out.actual.data(), in.data(), bits, n);
      REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n), table.name, " n=", n);
    }
    Twins<float> back(n, offset);
    reference_kernels().codecs.bf16_to_float(back.expected.data(), noise.data(), n);
    table.codecs.bf16_to_float(back.actual.data(), noise.data(), n);
    REQUIRE_MESSAGE(same_bits(back.expected, back.actual, n), table.name, " n=", n);
  });
}

TEST_CASE("kernels: descend and sum_of_squares equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> direction = floats(n, offset, 2);
    Twins<float> w(n, offset, [](std::int64_t i) { return awkward_float(i, 3); });
    reference_kernels().updates.descend(w.expected.data(), direction.data(), 0.1f, n);
    table.updates.descend(w.actual.data(), direction.data(), 0.1f, n);
    REQUIRE_MESSAGE(same_bits(w.expected, w.actual, n, true), table.name, " n=", n);

    Guarded<float> x(n, offset);
    for (std::int64_t i = 0; i < n; ++i) {
      const float value = awkward_float(i, 4);
      x[i] = std::isfinite(value) ? value : 1.0f;
    }
    const double expected = reference_kernels().reductions.sum_of_squares(x.data(), n);
    REQUIRE_MESSAGE(table.reductions.sum_of_squares(x.data(), n) == expected, table.name, " n=", n);
    if (n > 0) {
      x[n / 2] = std::numeric_limits<float>::quiet_NaN();
      REQUIRE(std::isnan(table.reductions.sum_of_squares(x.data(), n)));
    }
  });
}

TEST_CASE("kernels: quantize_levels equals the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> direction = floats(n, offset, 5);
    Guarded<std::uint32_t> noise = noise_fractions(n, offset);
    Twins<std::int16_t> levels(n, offset);
    for (bool stochastic : {false, true}) {
      const std::uint32_t* bits = stochastic ? noise.data() : nullptr;
      for (float scale : {1.0f, 0.37f, 0.0f}) {
        for (int limit : {0, 1, 127, 255}) {
          reference_kernels().updates.quantize_levels(levels.expected.data(), direction.data(),
                                                      {scale, limit, bits}, n);
          table.updates.quantize_levels(levels.actual.data(), direction.data(),
                                        {scale, limit, bits}, n);
          REQUIRE_MESSAGE(same_bits(levels.expected, levels.actual, n), table.name, " n=", n);
        }
      }
    }
  });
}

TEST_CASE("kernels: quantize_levels goes against the direction, clips, and is unbiased") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 9> direction = {-0.5f, -1.5f, 2.5f,    -3.49f, inf,
                                          -inf,  nan,   -300.0f, 0.6f};
  std::array<std::int16_t, 9> levels{};
  reference_kernels().updates.quantize_levels(levels.data(), direction.data(), {1.0f, 255, nullptr},
                                              9);
  CHECK(levels == std::array<std::int16_t, 9>{0, 2, -2, 3, -255, 255, 0, 255, -1});
  // 2.25 becomes 3 for a quarter of the noise values and 2 for the rest.
  const std::vector<float> same(65536, -2.25f);
  std::vector<std::uint32_t> noise(65536);
  std::vector<std::int16_t> drawn(65536);
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = as_fraction(static_cast<std::uint16_t>(i));
  }
  reference_kernels().updates.quantize_levels(drawn.data(), same.data(), {1.0f, 255, noise.data()},
                                              65536);
  CHECK(std::count(drawn.begin(), drawn.end(), 3) == 16384);
  CHECK(std::count(drawn.begin(), drawn.end(), 2) == 49152);
}

const AdamwConstants kAdamw{.beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .one_minus_beta1 = 0.1f,
                            .one_minus_beta2 = 0.001f,
                            .inverse_bias1 = 5.26f,
                            .inverse_bias2 = 500.25f,
                            .eps = 1e-8f,
                            .weight_decay = 0.01f};

TEST_CASE("kernels: adamw equals the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> grad = floats(n, offset, 6), master = floats(n, offset, 7);
    Twins<float> direction(n, offset);
    Twins<float> m(n, offset, [](std::int64_t i) { return awkward_float(i, 8); });
    Twins<float> v(n, offset, [](std::int64_t i) { return std::fabs(awkward_float(i, 9)); });
    reference_kernels().updates.adamw(direction.expected.data(), m.expected.data(),
                                      v.expected.data(), grad.data(), master.data(), kAdamw, n);
    table.updates.adamw(direction.actual.data(), m.actual.data(), v.actual.data(), grad.data(),
                        master.data(), kAdamw, n);
    REQUIRE_MESSAGE(same_bits(direction.expected, direction.actual, n, true), table.name, " n=", n);
    REQUIRE_MESSAGE(same_bits(m.expected, m.actual, n, true), table.name, " n=", n);
    REQUIRE_MESSAGE(same_bits(v.expected, v.actual, n, true), table.name, " n=", n);
  });
}

TEST_CASE("kernels: adamw is the published rule") {
  // All terms are positive, so no cancellation: relative errors add up to one unit of 2^-24 per
  // operation on the longest path. Numerator m b1: 3; root of v b2: (3 + 1) / 2 + 1; plus eps 1;
  // quotient 1; sum 1.
  constexpr double tolerance = 9.1 * 0x1p-24;
  const AdamwConstants& c = kAdamw;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const auto draw = [i](std::uint32_t stream) {
      return random_uniform({.seed = 1, .stream = stream, .step = 0},
                            static_cast<std::uint64_t>(i)) +
             0.001f;
    };
    float m = draw(1), v = draw(2), direction = 0.0f;
    const float grad = draw(3), master = draw(4);
    const double mean = double{c.beta1} * m + double{c.one_minus_beta1} * grad;
    const double square = double{c.beta2} * v + double{c.one_minus_beta2} * grad * grad;
    const double expected = mean * c.inverse_bias1 / (std::sqrt(square * c.inverse_bias2) + c.eps) +
                            double{c.weight_decay} * master;
    reference_kernels().updates.adamw(&direction, &m, &v, &grad, &master, c, 1);
    REQUIRE(std::fabs(m - mean) <= tolerance * mean);
    REQUIRE(std::fabs(v - square) <= tolerance * square);
    REQUIRE(std::fabs(direction - expected) <= tolerance * expected);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_kernels
