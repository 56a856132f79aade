// The update of ternary weights: every kernel against accumulate() of engine/formats/flips.h on
// every state, with directions that are whole levels; and with noise against the two steps apart.
#include <doctest/doctest.h>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_flips {
namespace {

// Every trit and accumulator with every level, in an order that mixes them within a vector.
struct AllStates {
  explicit AllStates(int max_level) {
    for (int level = -max_level; level <= max_level; ++level) {
      for (int accumulator = -128; accumulator <= 127; ++accumulator) {
        for (int trit = -1; trit <= 1; ++trit) {
          trits.push_back(static_cast<std::int8_t>(trit));
          accumulators.push_back(static_cast<std::int8_t>(accumulator));
          levels.push_back(level);
          direction.push_back(static_cast<float>(-level));
        }
      }
    }
  }
  std::int64_t size() const { return std::ssize(levels); }

  std::vector<std::int8_t> trits, accumulators;
  std::vector<int> levels;
  std::vector<float> direction;  // whose levels with the scale 1 these are
};

// Whole levels, exactly; `most` is the largest.
LevelRounding whole(int most) { return {1.0f, most, nullptr}; }

// Updates of one row.
FlipCounts descend_ternary(const KernelTables& table, std::int8_t* trits, std::int8_t* accumulators,
                           const Direction& direction, const LevelRounding& rounding,
                           const FlipPolicy& policy, std::int64_t n, double* squares = nullptr) {
  FlipCounts counts;
  table.updates.descend_ternary(&counts, trits, 0, accumulators, 0,
                                {&direction, &rounding, 1, n, squares}, policy);
  return counts;
}
FlipCounts descend_latent(const KernelTables& table, std::int8_t* codes, const Direction& direction,
                          const LevelRounding& rounding, int threshold, int hysteresis,
                          std::int64_t n, double* squares = nullptr) {
  return table.updates.descend_latent(codes, 0, {&direction, &rounding, 1, n, squares}, threshold,
                                      hysteresis);
}

void compare(const AllStates& start, const FlipPolicy& policy, int most) {
  AllStates expected = start;
  FlipCounts expected_counts;
  for (std::size_t i = 0; i < start.levels.size(); ++i) {
    const TritState next = accumulate({start.trits[i], start.accumulators[i]}, start.levels[i],
                                      policy, expected_counts);
    expected.trits[i] = static_cast<std::int8_t>(next.trit);
    expected.accumulators[i] = static_cast<std::int8_t>(next.accumulator);
  }
  for (const KernelTables* table : supported_kernels()) {
    AllStates actual = start;
    const FlipCounts counts =
        descend_ternary(*table, actual.trits.data(), actual.accumulators.data(),
                        start.direction.data(), whole(most), policy, start.size());
    CAPTURE(table->name);
    CAPTURE(policy.threshold);
    CAPTURE(policy.hysteresis);
    REQUIRE(actual.trits == expected.trits);
    REQUIRE(actual.accumulators == expected.accumulators);
    REQUIRE(counts.flips == expected_counts.flips);
    REQUIRE(counts.rail_flips == expected_counts.rail_flips);
  }
}

// Levels that fit bytes, and all: kernels may tell them apart.
constexpr int kMostLevels[] = {127, 255};

TEST_CASE("kernels: descend_ternary follows every policy on every state and level") {
  const AllStates narrow(kMostLevels[0]), all(kMostLevels[1]);
  for (OnFlip on_flip : {OnFlip::kCarry, OnFlip::kReset}) {
    for (Transition transition : {Transition::kStepOneTrit, Transition::kSetSign}) {
      for (int threshold : {0, 7, 31, 42, 62, 63, 100, 126}) {
        for (int hysteresis : {0, 8, 126, -9, 40000}) {
          compare(narrow, {threshold, on_flip, transition, hysteresis}, kMostLevels[0]);
          compare(all, {threshold, on_flip, transition, hysteresis}, kMostLevels[1]);
        }
      }
    }
  }
}

void compare_latent(int threshold) {
  constexpr int most = kMostLevels[0];
  const int k = 2 * threshold + 1;
  std::vector<std::int8_t> codes;
  std::vector<int> levels;
  std::vector<float> direction;
  for (int level = -most; level <= most; ++level) {
    for (int code = -128; code <= 127; ++code) {
      codes.push_back(static_cast<std::int8_t>(code));
      levels.push_back(level);
      direction.push_back(static_cast<float>(-level));
    }
  }
  for (int hysteresis : {0, 8, 42, -9, 40000}) {
    FlipCounts expected_counts;
    std::vector<std::int8_t> expected = codes;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      FlipPolicy policy;
      policy.threshold = threshold;
      policy.hysteresis = hysteresis;
      const TritState next =
          accumulate(split_code(codes[i], threshold), levels[i], policy, expected_counts);
      expected[i] = static_cast<std::int8_t>(k * next.trit + next.accumulator);
    }
    for (const KernelTables* table : supported_kernels()) {
      std::vector<std::int8_t> actual = codes;
      const FlipCounts counts = descend_latent(*table, actual.data(), direction.data(), whole(most),
                                               threshold, hysteresis, std::ssize(actual));
      CAPTURE(table->name);
      CAPTURE(threshold);
      REQUIRE(actual == expected);
      REQUIRE(counts.flips == expected_counts.flips);
      REQUIRE(counts.rail_flips == expected_counts.rail_flips);
    }
  }
}

// 42, 10, 5 and 2 are the thresholds of latent8, latent6, latent5 and latent4.
TEST_CASE("kernels: descend_latent is accumulate() on codes of one byte") {
  for (int threshold : {42, 10, 5, 2, 0}) compare_latent(threshold);
}

// Trits and codes of one length and start, for one table.
struct Arrays {
  Guarded<std::int8_t> make_trits() const {
    Guarded<std::int8_t> trits(n, offset);
    for (std::int64_t i = 0; i < n; ++i) trits[i] = static_cast<std::int8_t>(i % 3 - 1);
    return trits;
  }
  Guarded<std::int8_t> make_codes() const {
    Guarded<std::int8_t> codes(n, offset);
    for (std::int64_t i = 0; i < n; ++i) codes[i] = static_cast<std::int8_t>(i * 29 % 85 - 42);
    return codes;
  }

  void compare_levels(const Direction& direction, const LevelRounding& rounding) const {
    Twins<std::int16_t> levels(n, offset);
    table.updates.quantize_levels(levels.actual.data(), direction, rounding, n);
    reference_kernels().updates.quantize_levels(levels.expected.data(), direction, rounding, n);
    REQUIRE_MESSAGE(same_bits(levels.actual, levels.expected, n), table.name, " n=", n);
  }

  // Returns where the squares go: they are asked for of floats, every other time; -1 stays where
  // nobody asks.
  double* asked(const Direction& direction, double& squares) const {
    const bool can = direction.floats != nullptr && !direction.signs;
    return can && n % 2 == 0 ? &squares : nullptr;
  }
  bool is_sum_of_squares(double squares, const Direction& direction) const {
    double unasked = -1.0;
    if (asked(direction, unasked) == nullptr) return squares == -1.0;
    const double expected = reference_kernels().reductions.sum_of_squares(direction.floats, n);
    return std::isnan(expected) ? std::isnan(squares) : squares == expected;
  }

  // Compares with quantize_levels and accumulate().
  void compare_ternary(const Direction& direction, const LevelRounding& rounding,
                       const FlipPolicy& policy) const {
    std::vector<std::int16_t> levels(static_cast<std::size_t>(n));
    table.updates.quantize_levels(levels.data(), direction, rounding, n);
    Guarded<std::int8_t> trits = make_trits(), accumulators = make_codes();
    Guarded<std::int8_t> expected_trits = make_trits(), expected_accumulators = make_codes();
    FlipCounts expected;
    for (std::int64_t i = 0; i < n; ++i) {
      const TritState next = accumulate({expected_trits[i], expected_accumulators[i]},
                                        levels[static_cast<std::size_t>(i)], policy, expected);
      expected_trits[i] = static_cast<std::int8_t>(next.trit);
      expected_accumulators[i] = static_cast<std::int8_t>(next.accumulator);
    }
    double squares = -1.0;
    const FlipCounts counts = descend_ternary(table, trits.data(), accumulators.data(), direction,
                                              rounding, policy, n, asked(direction, squares));
    REQUIRE(is_sum_of_squares(squares, direction));
    REQUIRE_MESSAGE(same_bits(trits, expected_trits, n), table.name, " n=", n);
    REQUIRE_MESSAGE(same_bits(accumulators, expected_accumulators, n), table.name, " n=", n);
    REQUIRE((counts.flips == expected.flips && counts.rail_flips == expected.rail_flips));
  }

  // Compares with the reference.
  void compare_latent(const Direction& direction, const LevelRounding& rounding) const {
    Guarded<std::int8_t> codes = make_codes(), expected_codes = make_codes();
    double squares = -1.0;
    const FlipCounts counts = descend_latent(table, codes.data(), direction, rounding, 42, 0, n,
                                             asked(direction, squares));
    REQUIRE(is_sum_of_squares(squares, direction));
    const FlipCounts expected =
        descend_latent(reference_kernels(), expected_codes.data(), direction, rounding, 42, 0, n);
    REQUIRE_MESSAGE(same_bits(codes, expected_codes, n), table.name, " n=", n);
    REQUIRE((counts.flips == expected.flips && counts.rail_flips == expected.rail_flips));
  }

  const KernelTables& table;
  std::int64_t n, offset;
};

TEST_CASE("kernels: updates handle every length, start and noise, and stay inside their arrays") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> numbers = floats(n, offset, 41);
    Guarded<std::uint32_t> noise = noise_fractions(n, offset);
    FlipPolicy wide, reset;
    wide.threshold = 126;
    reset.on_flip = OnFlip::kReset;
    const Arrays arrays{table, n, offset};
    for (const LevelRounding& rounding :
         {LevelRounding{85.0f, 85, noise.data(), as_offset(40000)},
          LevelRounding{85.0f, 85, nullptr}, LevelRounding{-0.3f, 127, noise.data()},
          LevelRounding{3.0f, 128, noise.data()}, LevelRounding{85.0f, 255, nullptr}}) {
      for (const Direction& direction :
           {Direction(numbers.data()), Direction(numbers.data(), -0.75f, true)}) {
        arrays.compare_levels(direction, rounding);
        for (const FlipPolicy& policy : {FlipPolicy{}, wide, reset}) {
          arrays.compare_ternary(direction, rounding, policy);
        }
        if (rounding.limit <= 127) arrays.compare_latent(direction, rounding);
      }
    }
  });
}

TEST_CASE("kernels: updates read sums of a product like numbers, of any size and factor") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<std::int32_t> sums(n, offset);
    for (std::int64_t i = 0; i < n; ++i) sums[i] = static_cast<std::int32_t>(i * 7919 % 4001);
    // 2^24 and beyond are rounded on their way to floats.
    if (n > 0) sums[n - 1] = 0x7FFFFFFF;
    if (n > 1) sums[n / 2] = -0x7FFFF000;
    Guarded<std::uint32_t> noise = noise_fractions(n, offset);
    FlipPolicy wide;
    wide.threshold = 126;
    const Arrays arrays{table, n, offset};
    for (const float factor : {0.01f, -3e-5f, 0.0f, 0.49f, 3e38f, INFINITY, NAN}) {
      for (const Direction& direction :
           {Direction(sums.data(), 0, factor), Direction(sums.data(), 1999, factor),
            Direction(sums.data(), 1999, factor, true)}) {
        for (const LevelRounding& rounding :
             {LevelRounding{1.0f, 85, noise.data()}, LevelRounding{1.0f, 85, nullptr},
              LevelRounding{8.5f, 127, nullptr},
              LevelRounding{8.5f, 253, noise.data(), as_offset(65535)}}) {
          arrays.compare_levels(direction, rounding);
          for (const FlipPolicy& policy : {FlipPolicy{}, wide}) {
            arrays.compare_ternary(direction, rounding, policy);
          }
          if (rounding.limit <= 127) arrays.compare_latent(direction, rounding);
        }
      }
    }
  });
}

TEST_CASE("kernels: descend_latent moves each row by a direction and a rounding of its own") {
  constexpr std::int64_t kRows = 4, kGap = 5;
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    const std::int64_t ld = n + kGap;
    Guarded<float> numbers = floats(n, offset, 43);
    Guarded<std::uint32_t> noise = noise_fractions(n, offset);
    Guarded<std::int32_t> sums(n, offset);
    for (std::int64_t i = 0; i < n; ++i) sums[i] = static_cast<std::int32_t>(i * 7919 % 4001);
    const Direction directions[kRows] = {{numbers.data()},
                                         {sums.data(), 1999, 0.01f},
                                         {sums.data(), 3, NAN},
                                         {numbers.data(), 0.5f, true}};
    const LevelRounding roundings[kRows] = {{85.0f, 85, noise.data(), as_offset(40000)},
                                            {1.0f, 85, noise.data()},
                                            {8.5f, 127, nullptr},
                                            {40.0f, 85, noise.data()}};
    Twins<std::int8_t> codes(kRows * ld, offset);
    for (std::int64_t i = 0; i < kRows * ld; ++i) {
      codes.actual[i] = codes.expected[i] = static_cast<std::int8_t>(i * 29 % 255 - 127);
    }
    FlipCounts expected;
    for (std::int64_t r = 0; r < kRows; ++r) {
      expected += descend_latent(reference_kernels(), codes.expected.data() + r * ld, directions[r],
                                 roundings[r], 42, 0, n);
    }
    const FlipCounts counts = table.updates.descend_latent(
        codes.actual.data(), ld, {directions, roundings, kRows, n}, 42, 0);
    REQUIRE_MESSAGE(same_bits(codes.actual, codes.expected, kRows * ld), table.name, " n=", n);
    REQUIRE((counts.flips == expected.flips && counts.rail_flips == expected.rail_flips));
  });
}

// Makes one row of several another kind than those around it.
using Change = void (*)(Direction& direction, LevelRounding& rounding);
constexpr Change kChanges[] = {
    [](Direction&, LevelRounding&) {},
    [](Direction&, LevelRounding& rounding) { rounding.limit = 20; },
    [](Direction&, LevelRounding& rounding) { rounding.noise = nullptr; },
    [](Direction&, LevelRounding& rounding) { rounding.noise += 1; },
    [](Direction& direction, LevelRounding&) { direction.factor = 3.0f; },  // not small
    [](Direction& direction, LevelRounding&) { direction.factor = NAN; },
};

// Many rows of sums, which share a noise but for their offsets.
void compare_rows_of_sums(const KernelTables& table, std::int64_t n, std::int64_t offset,
                          Change change = kChanges[0]) {
  constexpr std::int64_t kRows = 19, kGap = 3;
  const std::int64_t ld = n + kGap;
  Guarded<std::uint32_t> noise = noise_fractions(n + 1, offset);
  Guarded<std::int32_t> sums(kRows * n, offset);
  for (std::int64_t i = 0; i < kRows * n; ++i) {
    sums[i] = static_cast<std::int32_t>(i * 7919 % 40001) - 20000;
  }
  struct Settings {
    int threshold, hysteresis, limit;
  };
  for (const Settings& set :
       {Settings{42, 0, 127}, {42, 8, 127}, {42, 0, 85}, {10, 0, 127}, {10, 3, 21}}) {
    std::array<Direction, kRows> directions;
    std::array<LevelRounding, kRows> roundings;
    for (std::int64_t r = 0; r < kRows; ++r) {
      const auto at = static_cast<std::size_t>(r);
      // From moves of less than a level to such across all codes.
      directions[at] = {sums.data() + r * n, static_cast<std::int32_t>(91 * r),
                        1e-5f * static_cast<float>((r % 4 + 1) * r)};
      roundings[at] = {r % 2 == 0 ? 0.9f : -17.0f, set.limit, noise.data(),
                       as_offset(static_cast<std::uint16_t>(r * 4099))};
    }
    change(directions[5], roundings[5]);
    Twins<std::int8_t> codes(kRows * ld, offset);
    for (std::int64_t i = 0; i < kRows * ld; ++i) {
      codes.actual[i] = codes.expected[i] = static_cast<std::int8_t>(i * 29 % 256 - 128);
    }
    const auto descend = [&](const KernelTables& by, std::int8_t* rows) {
      return by.updates.descend_latent(rows, ld, {directions.data(), roundings.data(), kRows, n},
                                       set.threshold, set.hysteresis);
    };
    const FlipCounts expected = descend(reference_kernels(), codes.expected.data());
    const FlipCounts counts = descend(table, codes.actual.data());
    REQUIRE_MESSAGE(same_bits(codes.actual, codes.expected, kRows * ld), table.name, " n=", n);
    REQUIRE((counts.flips == expected.flips && counts.rail_flips == expected.rail_flips));
  }
}

TEST_CASE("kernels: descend_latent rounds many rows of sums by one noise and their own offsets") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    compare_rows_of_sums(table, n, offset);
  });
  // More vectors than a counter of one byte counts.
  for (const KernelTables* table : supported_kernels()) compare_rows_of_sums(*table, 1471, 1);
  for (const KernelTables* table : supported_kernels()) {
    for (const Change change : kChanges) compare_rows_of_sums(*table, 150, 1, change);
  }
}

TEST_CASE("kernels: flips are counted exactly beyond the 16 bits of a lane") {
  constexpr std::int64_t n = 2 * 32768 * 32 + 77;
  std::vector<std::int8_t> trits(n, 0), accumulators(n, 0);
  std::vector<float> direction(n);
  FlipPolicy wide, reset;
  wide.threshold = 43;  // the first whose lanes have 16 bits
  reset.on_flip = OnFlip::kReset;
  for (const KernelTables* table : supported_kernels()) {
    for (const FlipPolicy& policy : {FlipPolicy{}, wide, reset}) {
      for (int most : kMostLevels) {
        std::fill(direction.begin(), direction.end(), static_cast<float>(-most));
        std::fill(trits.begin(), trits.end(), std::int8_t{0});
        std::fill(accumulators.begin(), accumulators.end(), std::int8_t{0});
        const auto descend = [&] {
          return descend_ternary(*table, trits.data(), accumulators.data(), direction.data(),
                                 whole(most), policy, n);
        };
        FlipCounts counts = descend();
        CHECK((counts.flips == n && counts.rail_flips == 0));
        counts = descend();
        CHECK((counts.flips == 0 && counts.rail_flips == n));
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_flips
