// Kernels that update several rows at once, each by a direction and a rounding of its own, against
// the reference row by row.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "engine/formats/shared_accumulator.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_rows {
namespace {

constexpr std::int64_t kRows = 8, kGap = 5;

// Rows of every kind, some with numbers that are none.
struct Rows {
  Rows(std::int64_t n_, std::int64_t offset)
      : n(n_),
        numbers(floats(n, offset, 47)),
        noise(noise_fractions(n, offset)),
        sums(n, offset),
        directions{Direction(numbers.data()),
                   {sums.data(), 1999, 0.01f},
                   {sums.data(), 3, NAN},
                   {numbers.data(), 0.5f, true},
                   {numbers.data(), INFINITY, true},
                   {sums.data(), 7, 3e38f, true},
                   {sums.data(), 1999, 1e7f},
                   {sums.data(), -5, -0.02f}} {
    for (std::int64_t i = 0; i < n; ++i) sums[i] = static_cast<std::int32_t>(i * 7919 % 4001);
  }
  // Limits that fit a byte or, every other time, do not.
  void set_roundings(int small, int large) {
    for (std::size_t r = 0; r < kRows; ++r) {
      roundings[r] = {r % 2 == 0 ? 85.0f : 3.0f, r % 3 == 1 ? large : small,
                      r == 2 ? nullptr : noise.data(),
                      as_offset(static_cast<std::uint16_t>(9999 * r))};
    }
  }
  DirectionRows all() { return {directions.data(), roundings.data(), kRows, n}; }
  DirectionRows only(std::size_t r) { return {&directions[r], &roundings[r], 1, n}; }

  std::int64_t n;
  Guarded<float> numbers;
  Guarded<std::uint32_t> noise;
  Guarded<std::int32_t> sums;
  std::array<Direction, kRows> directions;
  std::array<LevelRounding, kRows> roundings;
};

// What the squares are added up of: nothing, rows of every kind, floats, or floats that all fit an
// int32 as levels; every third of the floats are read by their signs.
enum class Measured { kNone, kAll, kFloats, kSmallFloats };
constexpr Measured kEveryMeasured[] = {Measured::kNone, Measured::kAll, Measured::kFloats,
                                       Measured::kSmallFloats};

struct Squares {
  Squares(Rows& rows, DirectionRows& all, Measured measured_) : measured(measured_) {
    if (measured == Measured::kNone) return;
    if (measured == Measured::kSmallFloats) {
      for (std::int64_t i = 0; i < rows.n; ++i) {
        float& x = rows.numbers[i];
        if (!(std::abs(x) < 1e6f)) x = 0.37f * static_cast<float>(i % 11 - 5);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      Direction& direction = rows.directions[r];
      if (measured != Measured::kAll) {
        direction = {rows.numbers.data(), r == 6 ? NAN : 0.5f, r % 3 == 2};
      }
      expected[r] = sum_of_squares(direction, rows.n);
    }
    all.squares = actual.data();
  }
  static double sum_of_squares(const Direction& direction, std::int64_t n) {
    if (direction.floats != nullptr) {
      return reference_kernels().reductions.sum_of_squares(direction.floats, n);
    }
    double sum = 0.0;  // of whole numbers far below 2^53
    for (std::int64_t i = 0; i < n; ++i) {
      const double number = direction.sums[i] - direction.correction;
      sum += number * number;
    }
    return sum;
  }
  bool are_right() const {
    for (std::size_t r = 0; r < kRows && measured != Measured::kNone; ++r) {
      const bool both_nan = std::isnan(expected[r]) && std::isnan(actual[r]);
      if (!both_nan && actual[r] != expected[r]) return false;
    }
    return true;
  }

  Measured measured;
  std::array<double, kRows> actual{}, expected{};
};

bool same_counts(const FlipCounts& a, const FlipCounts& b) {
  return a.flips == b.flips && a.rail_flips == b.rail_flips;
}

void fill_rows(Twins<std::int8_t>& rows, std::int64_t ld, std::int64_t n, int step, int range,
               int least) {
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = r * ld + i;
      rows.actual[at] = rows.expected[at] = static_cast<std::int8_t>((at * step) % range + least);
    }
  }
}

void compare_ternary(const KernelTables& table, Rows& rows, DirectionRows all, std::int64_t offset,
                     const FlipPolicy& policy) {
  const std::int64_t n = rows.n, ld = n + kGap, ld_a = n + 2 * kGap;
  Twins<std::int8_t> trits(kRows * ld, offset), accumulators(kRows * ld_a, offset);
  fill_rows(trits, ld, n, 7, 3, -1);
  fill_rows(accumulators, ld_a, n, 29, policy.threshold == 0 ? 1 : 85,
            policy.threshold == 0 ? 0 : -42);
  std::array<FlipCounts, kRows> counts;
  table.updates.descend_ternary(counts.data(), trits.actual.data(), ld, accumulators.actual.data(),
                                ld_a, all, policy);
  for (std::size_t r = 0; r < kRows; ++r) {
    const auto row = static_cast<std::int64_t>(r);
    FlipCounts expected;
    reference_kernels().updates.descend_ternary(&expected, trits.expected.data() + row * ld, 0,
                                                accumulators.expected.data() + row * ld_a, 0,
                                                rows.only(r), policy);
    REQUIRE_MESSAGE(same_counts(counts[r], expected), table.name, " n=", n, " row ", r);
  }
  REQUIRE_MESSAGE(same_bits(trits.actual, trits.expected, kRows * ld), table.name, " n=", n);
  REQUIRE(same_bits(accumulators.actual, accumulators.expected, kRows * ld_a));
}

TEST_CASE("kernel rows: descend_ternary counts and moves each row by itself") {
  FlipPolicy bytes, wide, between, whole, reset;
  wide.threshold = 126;
  between.threshold = 50;
  whole.threshold = 0;
  reset.on_flip = OnFlip::kReset;
  for_each_case([&](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    for (const FlipPolicy& policy : {bytes, wide, between, whole, reset}) {
      for (const int large : {85, 253}) {
        for (const Measured measured : kEveryMeasured) {
          Rows rows(n, offset);
          rows.set_roundings(85, large);
          DirectionRows all = rows.all();
          const Squares squares(rows, all, measured);
          compare_ternary(table, rows, all, offset, policy);
          REQUIRE_MESSAGE(squares.are_right(), table.name, " n=", n);
        }
      }
    }
  });
}

TEST_CASE("kernel rows: descend_shared counts and moves each row by itself") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    for (const int sharing : {4, 8, 16}) {
      const std::int64_t groups = (n + sharing - 1) / sharing;
      const std::int64_t ld = n + kGap, ld_shared = groups + kGap;
      for (const Measured measured : kEveryMeasured) {
        Rows rows(n, offset);
        rows.set_roundings(shared_threshold(sharing), 1);
        DirectionRows all = rows.all();
        const Squares squares(rows, all, measured);
        Twins<std::int8_t> trits(kRows * ld, offset), shared(kRows * ld_shared, offset);
        fill_rows(trits, ld, n, 7, 3, -1);
        fill_rows(shared, ld_shared, groups, 37, 255, -127);
        std::array<FlipCounts, kRows> counts;
        table.updates.descend_shared(counts.data(), trits.actual.data(), ld, shared.actual.data(),
                                     ld_shared, all, sharing, 1);
        for (std::size_t r = 0; r < kRows; ++r) {
          const auto row = static_cast<std::int64_t>(r);
          FlipCounts expected;
          reference_kernels().updates.descend_shared(&expected, trits.expected.data() + row * ld, 0,
                                                     shared.expected.data() + row * ld_shared, 0,
                                                     rows.only(r), sharing, 1);
          REQUIRE_MESSAGE(same_counts(counts[r], expected), table.name, " n=", n, " row ", r);
        }
        REQUIRE_MESSAGE(same_bits(trits.actual, trits.expected, kRows * ld), table.name, " n=", n);
        REQUIRE(same_bits(shared.actual, shared.expected, kRows * ld_shared));
        REQUIRE_MESSAGE(squares.are_right(), table.name, " n=", n);
      }
    }
  });
}

TEST_CASE("kernel rows: descend_latent moves each row by itself") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    const std::int64_t ld = n + kGap;
    for (const Measured measured : kEveryMeasured) {
      Rows rows(n, offset);
      rows.set_roundings(85, 127);
      DirectionRows all = rows.all();
      const Squares squares(rows, all, measured);
      Twins<std::int8_t> codes(kRows * ld, offset);
      fill_rows(codes, ld, n, 29, 255, -127);
      const FlipCounts counts = table.updates.descend_latent(codes.actual.data(), ld, all, 42, 0);
      FlipCounts expected;
      for (std::size_t r = 0; r < kRows; ++r) {
        expected += reference_kernels().updates.descend_latent(
            codes.expected.data() + static_cast<std::int64_t>(r) * ld, 0, rows.only(r), 42, 0);
      }
      REQUIRE_MESSAGE(same_counts(counts, expected), table.name, " n=", n);
      REQUIRE_MESSAGE(same_bits(codes.actual, codes.expected, kRows * ld), table.name, " n=", n);
      REQUIRE_MESSAGE(squares.are_right(), table.name, " n=", n);
    }
  });
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_rows
