// Products of int8 numbers and what surrounds them: every table against the reference, and the
// reference against its contract.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/formats/format.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/panel_products.h"

namespace tritgrad::test::test_kernel_integers {
namespace {

TEST_CASE("kernel integers: products with a panel equal the reference, extremes included") {
  for (const KernelTables* tables : vector_kernels()) {
    CAPTURE(tables->name);
    compare_products(tables->products);
  }
}

TEST_CASE("kernel integers: sums become numbers") {
  const std::array<std::int32_t, 3> corrections{0, -77, 123456};
  const std::array<float, 3> factors{0.37f, -1e-30f, 2.0f};
  constexpr std::int64_t kRows = 3, kGap = 5, kGapOfSums = 2;
  for_each_case([&](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    const std::int64_t ld = n + kGap, all = kRows * ld;
    const std::int64_t ld_sums = n + kGapOfSums, all_sums = kRows * ld_sums;
    Guarded<std::int32_t> sums(all_sums, offset);
    for (std::int64_t i = 0; i < all_sums; ++i) sums[i] = draw(i, -2000000, 2000000) * 1000;
    Guarded<float> column_factors = floats(n, offset, 3);
    const auto start = [](std::int64_t i) { return static_cast<float>(i); };
    Twins<float> one(all, offset, start), many(all, offset, start);
    for (const bool actual : {false, true}) {
      const KernelTables& t = actual ? table : reference_kernels();
      t.products.rescale_sums((actual ? one.actual : one.expected).data(), ld, sums.data(), ld_sums,
                              corrections.data(), factors.data(), kRows, n);
      t.products.rescale_sums_by((actual ? many.actual : many.expected).data(), ld, sums.data(),
                                 ld_sums, corrections.data(), factors.data(), column_factors.data(),
                                 kRows, n);
    }
    REQUIRE(same_bits(one.expected, one.actual, all));
    REQUIRE(same_bits(many.expected, many.actual, all, true));
    for (std::int64_t i = 0; i < all; ++i) {
      const auto row = static_cast<std::size_t>(i / ld);
      const std::int64_t column = i % ld;
      if (column >= n) {  // between rows nothing is written
        REQUIRE(one.actual[i] == start(i));
        REQUIRE(many.actual[i] == start(i));
        continue;
      }
      const float exact = static_cast<float>(sums[i / ld * ld_sums + column] - corrections[row]);
      REQUIRE(one.actual[i] == factors[row] * exact);
      const float by = factors[row] * column_factors[column] * exact;
      REQUIRE((std::isnan(by) ? std::isnan(many.actual[i]) : many.actual[i] == by));
    }
  });
}

TEST_CASE("kernel integers: dot products with packed trits and with bytes") {
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    std::vector<std::int64_t> lengths = awkward_lengths();
    lengths.insert(lengths.end(), {640, 3840, 3841, 4096, 9600});
    for (std::int64_t n : lengths) {
      CAPTURE(n);
      for (std::int64_t offset : {0, 1, 7}) {
        for (bool all_limit : {false, true}) {
          Guarded<std::int8_t> trits = bytes(n, offset, 1, all_limit);
          Guarded<std::int8_t> x = bytes(n, offset + 1, 127, all_limit);
          Guarded<std::uint8_t> packed(n / kBlock * (kBlock / 5) + (n % kBlock + 4) / 5, offset);
          std::int32_t digits = 0, products = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            digits += (trits[i] + 1) * x[i];
            products += trits[i] * x[i];
          }
          for (std::int64_t begin = 0; begin < n; begin += kBlock) {
            table->codecs.encode_trits(packed.data() + begin / 5, trits.data() + begin,
                                       std::min(kBlock, n - begin));
          }
          std::int32_t sum = 7;
          table->products.dot_packed_trits(&sum, packed.data(), 1, 1, x.data(), n);
          REQUIRE(sum == digits);
          REQUIRE(table->products.dot_int8(trits.data(), x.data(), n) == products);
        }
      }
    }
    // Several rows, some bytes apart; bytes that no trits have read as the largest one.
    for (std::int64_t n : {70, 320, 700}) {
      constexpr std::int64_t kRows = 3;
      const std::int64_t used = n / kBlock * (kBlock / 5) + (n % kBlock + 4) / 5;
      Guarded<std::uint8_t> packed(kRows * (used + 5), 3);
      for (std::int64_t i = 0; i < kRows * (used + 5); ++i) {
        packed[i] = static_cast<std::uint8_t>(draw(i, 0, 255));
      }
      Guarded<std::int8_t> x = bytes(n, 1, 127);
      Twins<std::int32_t> sums(kRows, 1);
      for (std::int64_t row = 0; row < kRows; ++row) {
        sums.expected[row] = 0;
        for (std::int64_t begin = 0; begin < n; begin += kBlock) {
          const std::int64_t count = std::min(kBlock, n - begin), stripe = (count + 4) / 5;
          for (std::int64_t i = 0; i < count; ++i) {
            int digits = std::min<int>(packed[row * (used + 5) + begin / 5 + i % stripe], 242);
            for (std::int64_t k = 0; k < i / stripe; ++k) digits /= 3;
            sums.expected[row] += digits % 3 * x[begin + i];
          }
        }
      }
      table->products.dot_packed_trits(sums.actual.data(), packed.data(), used + 5, kRows, x.data(),
                                       n);
      REQUIRE(same_bits(sums.expected, sums.actual, kRows));
    }
  }
}

// Rows are read several at a time, and a vector beyond the end of one where the next one lies: not
// beyond the last.
TEST_CASE("kernel integers: any number of rows of packed trits, up to the last byte of memory") {
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (std::int64_t n : {1, 5, 63, 64, 319, 320, 321, 700}) {
      const std::int64_t used = n / kBlock * (kBlock / 5) + (n % kBlock + 4) / 5;
      Guarded<std::int8_t> x = bytes(n, 1, 127);
      for (const std::int64_t row_bytes : {used, used + 64}) {
        for (std::int64_t rows = 1; rows <= 8; ++rows) {
          std::vector<std::uint8_t> packed(static_cast<std::size_t>((rows - 1) * row_bytes + used));
          for (std::size_t i = 0; i < packed.size(); ++i) {
            packed[i] = static_cast<std::uint8_t>(draw(static_cast<std::int64_t>(i), 0, 255));
          }
          Twins<std::int32_t> sums(rows, 1);
          reference_kernels().products.dot_packed_trits(sums.expected.data(), packed.data(),
                                                        row_bytes, rows, x.data(), n);
          table->products.dot_packed_trits(sums.actual.data(), packed.data(), row_bytes, rows,
                                           x.data(), n);
          REQUIRE(same_bits(sums.expected, sums.actual, rows));
        }
      }
    }
  }
}

TEST_CASE("kernel integers: the longest rows of packed trits fit the sums") {
  constexpr std::int64_t n = kLongestSum;
  const std::vector<std::uint8_t> ones(n / 5, 242);  // every trit is 1
  for (const int code : {127, -127}) {
    const std::vector<std::int8_t> x(n, static_cast<std::int8_t>(code));
    for (const KernelTables* table : supported_kernels()) {
      CAPTURE(table->name);
      std::int32_t sum = 0;
      table->products.dot_packed_trits(&sum, ones.data(), n / 5, 1, x.data(), n);
      CHECK(sum == 2 * code * n);
    }
  }
}

TEST_CASE("kernel integers: the reference product is the sum of products") {
  constexpr std::int64_t groups = 3;
  std::array<std::int8_t, 4 * groups> a;
  std::array<std::uint8_t, 4 * groups * kPanelColumns> panel;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = extreme(static_cast<std::int64_t>(i), 127);
  for (std::size_t i = 0; i < panel.size(); ++i) {
    panel[i] = static_cast<std::uint8_t>(draw(static_cast<std::int64_t>(i), 0, 255));
  }
  for (const bool add : {false, true}) {
    std::array<std::int32_t, kPanelColumns> sums;
    sums.fill(7);
    reference_kernels().products.multiply_panel(sums.data(), kPanelColumns, a.data(), 0, 1,
                                                kPanelColumns, panel.data(), groups,
                                                PanelRange::kBytes, add, {});
    for (std::size_t c = 0; c < kPanelColumns; ++c) {
      int expected = add ? 7 : 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        expected += a[i] * panel[(i / 4 * kPanelColumns + c) * 4 + i % 4];
      }
      REQUIRE(sums[c] == expected);
    }
  }
}

TEST_CASE("kernel integers: panels hold every number where the contract says, and zeros beyond") {
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    std::vector<std::int64_t> depths(21);
    std::iota(depths.begin(), depths.end(), std::int64_t{0});
    depths.insert(depths.end(), {31, 32, 33, 63, 64, 65, 66, 127, 129, 132});
    for (std::int64_t columns : {1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64}) {
      for (std::int64_t depth : depths) {
        for (int offset : {0, 1, 128}) {
          const int limit = offset == 128 ? 127 : offset;
          const std::int64_t ld = std::max(columns, depth) + 3;
          Guarded<std::int8_t> rows = bytes(ld * ld, 1, limit);
          const std::int64_t size = (depth + 3) / 4 * 4 * kPanelColumns;
          Guarded<std::uint8_t> down(size, 3), across(size, 3);
          table->products.pack_down(down.data(), rows.data(), ld, depth, columns, offset);
          table->products.pack_across(across.data(), rows.data(), ld, depth, columns, offset);
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < size; ++i) {
            const std::int64_t column = i / 4 % kPanelColumns;
            const std::int64_t number = i / (4 * kPanelColumns) * 4 + i % 4;
            const bool exists = column < columns && number < depth;
            wrong += down[i] != (exists ? rows[number * ld + column] + offset : 0);
            wrong += across[i] != (exists ? rows[column * ld + number] + offset : 0);
          }
          CAPTURE(columns);
          CAPTURE(depth);
          REQUIRE(wrong == 0);
          REQUIRE((down[-1] == 0x5A && down[size] == 0x5A));
          REQUIRE((across[-1] == 0x5A && across[size] == 0x5A));
        }
      }
    }
  }
}

TEST_CASE("kernel integers: quantiser, sums, largest magnitudes and trits equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    CAPTURE(table.name);
    CAPTURE(n);
    Guarded<float> x = floats(n, offset, 31);
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) x[i] = 0.0f;  // any code
    }
    for (float inverse : {1.0f, 0.37f, 1e-38f, 0.0f}) {
      for (std::int64_t i = 0; i < n && inverse == 0.0f; ++i) {
        if (std::isinf(x[i])) x[i] = 1.0f;  // infinity times zero: any code
      }
      Twins<std::int8_t> codes(n, offset);
      reference_kernels().products.quantize_int8(codes.expected.data(), x.data(), nullptr, inverse,
                                                 n);
      table.products.quantize_int8(codes.actual.data(), x.data(), nullptr, inverse, n);
      REQUIRE(same_bits(codes.expected, codes.actual, n));
      for (std::int64_t i = 0; i < n; ++i) {
        const float exact = std::clamp(x[i] * inverse, -127.0f, 127.0f);
        REQUIRE(codes.actual[i] == static_cast<std::int8_t>(std::nearbyint(exact)));
      }
    }
    Guarded<float> factors(n, offset), usual(n, offset);
    for (std::int64_t i = 0; i < n; ++i) {
      factors[i] = 0.01f * static_cast<float>(i % 7) - 0.02f;
      usual[i] = static_cast<float>(i % 29) - 14.0f;
    }
    Guarded<float> any = floats(n, offset, 33), clipped = floats(n, offset, 33);
    for (std::int64_t i = 0; i < n; ++i) {
      // NaN, also as infinity times zero, has any code.
      if (std::isnan(clipped[i]) || factors[i] == 0.0f) clipped[i] = 0.0f;
    }
    for (Guarded<float>* numbers : {&usual, &clipped}) {
      Twins<std::int8_t> products(n, offset);
      reference_kernels().products.quantize_int8(products.expected.data(), numbers->data(),
                                                 factors.data(), 211.0f, n);
      table.products.quantize_int8(products.actual.data(), numbers->data(), factors.data(), 211.0f,
                                   n);
      REQUIRE(same_bits(products.expected, products.actual, n));
      Twins<std::int8_t> rests(n, offset);
      reference_kernels().products.quantize_rests(rests.expected.data(), products.actual.data(),
                                                  numbers->data(), factors.data(), 211.0f, n);
      table.products.quantize_rests(rests.actual.data(), products.actual.data(), numbers->data(),
                                    factors.data(), 211.0f, n);
      REQUIRE(same_bits(rests.expected, rests.actual, n));
      for (std::int64_t i = 0; i < n; ++i) {
        const float level = (*numbers)[i] * factors[i] * 211.0f;
        const auto code = static_cast<float>(products.actual[i]);
        REQUIRE(code == std::nearbyint(std::clamp(level, -127.0f, 127.0f)));
        const float rest = std::clamp((level - code) * 254.0f, -127.0f, 127.0f);
        REQUIRE(rests.actual[i] == static_cast<std::int8_t>(std::nearbyint(rest)));
      }
    }
    for (Guarded<float>* numbers : {&usual, &any}) {
      float most = 0.0f;
      for (std::int64_t i = 0; i < n; ++i) {
        const float magnitude = std::abs((*numbers)[i] * factors[i]);
        if (!(magnitude <= most) && !std::isnan(most)) most = magnitude;
      }
      const float found = table.products.max_abs_product(numbers->data(), factors.data(), n);
      REQUIRE((std::isnan(most) ? std::isnan(found) : found == most));
    }
    Twins<float> largest(n, offset, [](std::int64_t i) { return std::abs(awkward_float(i, 8)); });
    Guarded<float> numbers = floats(n, offset, 32);
    const float half = -0.5f;
    reference_kernels().products.raise_max_abs(largest.expected.data(), numbers.data(), n, &half, 1,
                                               n);
    table.products.raise_max_abs(largest.actual.data(), numbers.data(), n, &half, 1, n);
    REQUIRE(same_bits(largest.expected, largest.actual, n, true));
    for (std::int64_t i = 0; i < n; ++i) {
      const float before = std::abs(awkward_float(i, 8)), now = std::abs(-0.5f * numbers[i]);
      const bool nan = std::isnan(before) || std::isnan(now);
      REQUIRE((nan ? std::isnan(largest.actual[i]) : largest.actual[i] == std::max(before, now)));
    }

    Guarded<std::int8_t> latent = bytes(n, offset, 127);
    const bool negative =
        std::any_of(latent.data(), latent.data() + n, [](std::int8_t c) { return c < 0; });
    REQUIRE(table.products.any_negative(latent.data(), n) == negative);
    // Rows that overlap, so that each has sums of its own.
    const std::int64_t rows = std::min<std::int64_t>(n, 3), length = n - rows + 1;
    std::array<std::int32_t, 4> sums{7, 7, 7, 7};
    table.products.sum_int8(sums.data(), latent.data(), 1, rows, length);
    for (std::int64_t r = 0; r < 4; ++r) {
      const std::int8_t* row = latent.data() + r;
      REQUIRE(sums[static_cast<std::size_t>(r)] ==
              (r < rows ? std::accumulate(row, row + length, 0) : 7));
    }
    for (int threshold : {2, 42}) {
      Twins<std::int8_t> trits(n, offset);
      reference_kernels().codecs.latent_to_trits(trits.expected.data(), latent.data(), threshold,
                                                 n);
      table.codecs.latent_to_trits(trits.actual.data(), latent.data(), threshold, n);
      REQUIRE(same_bits(trits.expected, trits.actual, n));
      for (std::int64_t i = 0; i < n; ++i) {
        REQUIRE(trits.actual[i] == (latent[i] > threshold) - (latent[i] < -threshold));
      }
    }
  });
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_integers
