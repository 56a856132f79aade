// The loops of levels: every table against the reference, and the reference against its formulas.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/kernel_comparison.h"

namespace tritgrad::test::test_kernel_levels {
namespace {

// Any levels, the ends of their range among them.
std::int16_t level(std::int64_t i, std::uint32_t salt) {
  constexpr std::array<std::int16_t, 4> kEnds{-32768, 32767, 0, -1};
  const auto index = static_cast<std::uint32_t>(i) * 2654435761u + salt * 40503u;
  if (index % 11 == 0) return kEnds[index / 11 % kEnds.size()];
  return static_cast<std::int16_t>(index >> 16);
}

Guarded<std::int16_t> levels(std::int64_t n, std::int64_t offset, std::uint32_t salt) {
  Guarded<std::int16_t> x(n, offset);
  for (std::int64_t i = 0; i < n; ++i) x[i] = level(i, salt);
  return x;
}

TEST_CASE("kernel levels: sums are narrowed to nearest, halves up") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    constexpr std::int64_t kRows = 3;
    for (const int shift : {0, 1, 5}) {
      const std::int64_t ld = n + offset;
      Guarded<std::int32_t> sums(kRows * ld, offset), corrections(kRows, 0);
      for (std::int64_t r = 0; r < kRows; ++r) corrections[r] = static_cast<std::int32_t>(37 * r);
      for (std::int64_t i = 0; i < kRows * ld; ++i) {
        const int odd = shift > 0 && i % 2 != 0 ? 1 : 0;
        sums[i] = (level(i, 3) - odd) * (1 << shift) / 2;
      }
      Twins<std::int16_t> out(kRows * n, offset, [](std::int64_t) { return std::int16_t{7}; });
      reference_kernels().layers.narrow_sums(out.expected.data(), n, sums.data(), ld,
                                             corrections.data(), shift, kRows, n);
      table.layers.narrow_sums(out.actual.data(), n, sums.data(), ld, corrections.data(), shift,
                               kRows, n);
      REQUIRE(same_bits(out.expected, out.actual, kRows * n));
      double most = 0.0;
      for (std::int64_t i = 0; i < kRows * n; ++i) {
        const double sum = sums[i / n * ld + i % n] - corrections[i / n];
        REQUIRE(out.actual[i] == std::floor(sum / (1 << shift) + 0.5));
        most = std::max(most, std::abs(sum));
      }
      for (const KernelTables* each : {&table, &reference_kernels()}) {
        REQUIRE(each->products.largest_sum(sums.data(), ld, corrections.data(), kRows, n) == most);
      }
    }
  });
}

TEST_CASE("kernel levels: sums, squares and ranges down columns are exact") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    for (const std::int64_t rows : {0, 1, 7}) {
      const std::int64_t ld = n + offset;
      Guarded<std::int16_t> x = levels(rows * ld, offset, 5);
      const auto start = [](std::int64_t i) { return i - 5; };
      Twins<std::int64_t> sums(n, offset, start), squares(n, offset, start);
      Twins<std::int16_t> least(n, offset, [](std::int64_t i) { return level(i, 8); });
      Twins<std::int16_t> most(n, offset, [](std::int64_t i) { return level(i, 9); });
      const auto run = [&](const KernelTables& t, Guarded<std::int64_t> Twins<std::int64_t>::*sum,
                           Guarded<std::int16_t> Twins<std::int16_t>::*range) {
        t.layers.add_level_sums((sums.*sum).data(), (squares.*sum).data(), x.data(), ld, rows, n);
        t.layers.widen_level_range((least.*range).data(), (most.*range).data(), x.data(), ld, rows,
                                   n);
      };
      run(reference_kernels(), &Twins<std::int64_t>::expected, &Twins<std::int16_t>::expected);
      run(table, &Twins<std::int64_t>::actual, &Twins<std::int16_t>::actual);
      REQUIRE(same_bits(sums.expected, sums.actual, n));
      REQUIRE(same_bits(squares.expected, squares.actual, n));
      REQUIRE(same_bits(least.expected, least.actual, n));
      REQUIRE(same_bits(most.expected, most.actual, n));
      for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t sum = i - 5, square = i - 5;
        std::int16_t low = level(i, 8), high = level(i, 9);
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t value = x[r * ld + i];
          sum += value;
          square += value * value;
          low = std::min(low, x[r * ld + i]);
          high = std::max(high, x[r * ld + i]);
        }
        REQUIRE(sums.actual[i] == sum);
        REQUIRE(squares.actual[i] == square);
        REQUIRE(least.actual[i] == low);
        REQUIRE(most.actual[i] == high);
      }
    }
  });
}

TEST_CASE("kernel levels: the most rows of the largest levels fit the sums") {
  constexpr std::int64_t kColumns = 19;
  const std::array<std::int16_t, kColumns> row = [] {
    std::array<std::int16_t, kColumns> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 2 == 0 ? -32768 : 32767;
    return all;
  }();
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    std::array<std::int64_t, kColumns> sums{}, squares{};
    table->layers.add_level_sums(sums.data(), squares.data(), row.data(), 0, kMostLevelRows,
                                 kColumns);
    for (std::size_t i = 0; i < row.size(); ++i) {
      CHECK(sums[i] == kMostLevelRows * row[i]);
      CHECK(squares[i] == kMostLevelRows * row[i] * row[i]);
    }
  }
}

TEST_CASE("kernel levels: levels become floats") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<std::int16_t> x = levels(n, offset, 6);
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) {
          t.layers.levels_to_float(out, x.data(), 0.37f, n);
        },
        [&](std::int64_t i, float) { return 0.37f * static_cast<float>(x[i]); });
  });
}

TEST_CASE("kernel levels: pooling takes the largest or smallest of four, and the first wins") {
  for_each_case([](const KernelTables& table, std::int64_t channels, std::int64_t offset) {
    const std::int64_t width = channels % 3 + 1, n = width * channels;
    // Few values, so that there are ties.
    const auto few = [&](std::uint32_t salt) {
      Guarded<std::int16_t> x = levels(2 * n, offset, salt);
      for (std::int64_t i = 0; i < 2 * n; i += 2) x[i] = static_cast<std::int16_t>(x[i] % 3);
      return x;
    };
    Guarded<std::int16_t> above = few(1), below = few(2), turns(channels, offset);
    for (std::int64_t i = 0; i < channels; ++i) turns[i] = i % 3 == 1 ? -1 : 0;
    const auto none = [](std::int64_t) { return std::int16_t{0}; };
    Twins<std::int16_t> y(n, offset, none), winners(n, offset, none);
    Twins<float> dabove(2 * n, offset, [](std::int64_t) { return 1.0f; });
    Twins<float> dbelow(2 * n, offset, [](std::int64_t) { return 1.0f; });
    Guarded<float> dy(n, offset);
    for (std::int64_t i = 0; i < n; ++i) dy[i] = awkward_float(i, 3);
    const auto run = [&](const KernelTables& t, Guarded<std::int16_t> Twins<std::int16_t>::*side,
                         Guarded<float> Twins<float>::*floats) {
      t.layers.pool_levels((y.*side).data(), (winners.*side).data(), above.data(), below.data(),
                           turns.data(), width, channels);
      t.layers.give_to_winners((dabove.*floats).data(), (dbelow.*floats).data(),
                               (winners.*side).data(), dy.data(), width, channels);
    };
    run(reference_kernels(), &Twins<std::int16_t>::expected, &Twins<float>::expected);
    run(table, &Twins<std::int16_t>::actual, &Twins<float>::actual);
    REQUIRE(same_bits(y.expected, y.actual, n));
    REQUIRE(same_bits(winners.expected, winners.actual, n));
    REQUIRE(same_bits(dabove.expected, dabove.actual, 2 * n, true));
    REQUIRE(same_bits(dbelow.expected, dbelow.actual, 2 * n, true));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t left = i / channels * 2 * channels + i % channels;
      const std::int64_t right = left + channels;
      const std::array<int, 4> x{above[left], above[right], below[left], below[right]};
      const bool smallest = turns[i % channels] != 0;
      const auto best =
          smallest ? std::min_element(x.begin(), x.end()) : std::max_element(x.begin(), x.end());
      REQUIRE(y.actual[i] == *best);
      REQUIRE(winners.actual[i] == 1 << (best - x.begin()));
      const std::array<float, 4> given{dabove.actual[left], dabove.actual[right],
                                       dbelow.actual[left], dbelow.actual[right]};
      for (std::size_t j = 0; j < given.size(); ++j) {
        const bool won = static_cast<std::ptrdiff_t>(j) == best - x.begin();
        const float expected = won ? dy[i] : 0.0f;
        REQUIRE((given[j] == expected || (std::isnan(given[j]) && std::isnan(expected))));
      }
    }
  });
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_levels
