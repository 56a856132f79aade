// The noise of updates is spread over time as evenly as its theorem says, and rounds without bias.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/formats/descend.h"
#include "engine/formats/update_noise.h"

namespace tritgrad::test::test_update_noise {
namespace {

constexpr std::uint64_t kSeed = 42;
constexpr std::uint32_t kStream = random_stream("weight");

// Largest partial quotient of numerator / 2^16, beyond the whole part.
std::uint32_t largest_quotient(std::uint32_t numerator) {
  std::uint32_t largest = 0;
  for (std::uint32_t a = 65536, b = numerator; b != 0;) {
    largest = std::max(largest, a / b);
    a = std::exchange(b, a % b);
  }
  return largest;
}

// max over x in [0, 1] of | how many of the numbers lie below x - x times how many there are |
double uneven(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  double worst = 0.0;
  const auto n = static_cast<double>(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto below = static_cast<double>(i);
    worst = std::max({worst, n * numbers[i] - below, below + 1.0 - n * numbers[i]});
  }
  return worst;
}

double unit(std::uint16_t noise) { return (noise + 0.5) * 0x1p-16; }

TEST_CASE("update noise: blocks are numbered row by row") {
  std::uint64_t expected = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t col = 0; col < 700; col += kBlock) {
      CHECK(block_number({row, col, std::min<std::int64_t>(kBlock, 700 - col), 0}, 700) ==
            expected++);
    }
  }
}

TEST_CASE("update noise: alphas differ, are odd, and no fraction approximates them well") {
  auto alphas = kUpdateNoise.alpha;
  for (const std::uint16_t alpha : alphas) {
    CHECK(alpha % 2 == 1);
    CHECK(largest_quotient(alpha) <= 4);
  }
  std::sort(alphas.begin(), alphas.end());
  CHECK(std::adjacent_find(alphas.begin(), alphas.end()) == alphas.end());
}

// Kuipers and Niederreiter, theorem 3.4, for partial quotients up to 4: 2.08 is 1 / ln of the
// golden ratio, 2.49 is 4 / ln 5. A number in units of 2^-16 is half a unit off at most, which
// moves a count by one more. Of 4096 independent numbers the Kolmogorov-Smirnov distance, 0.83
// sqrt(4096) = 53 in the median, is below the bound of 42 for a fifth of all places; that all of
// them are is out of question.
TEST_CASE("update noise: whatever the step, what follows fills [0, 1) evenly") {
  constexpr std::uint32_t kSteps = 4096;
  const double bound = 4.0 + (2.08 + 2.49) * std::log(kSteps);
  for (const std::uint32_t first : {0u, 12345u, 4294965000u}) {
    for (std::size_t place = 0; place < UpdateNoiseTable::kPlaces; ++place) {
      std::vector<double> numbers;
      for (std::uint32_t t = 0; t < kSteps; ++t) {
        numbers.push_back(unit(update_noise({kSeed, kStream, first + t}, 5, place)));
      }
      REQUIRE(uneven(numbers) <= bound);
    }
  }
}

TEST_CASE("update noise: the places of a step, and a place in all rows, are uniform") {
  // Kolmogorov-Smirnov: 2.2 / sqrt(n) is exceeded once in 8000 times by independent numbers.
  for (const std::uint32_t step : {0u, 1u, 7u, 1000u}) {
    std::vector<double> places, rows;
    for (std::size_t place = 0; place < UpdateNoiseTable::kPlaces; ++place) {
      places.push_back(unit(update_noise({kSeed, kStream, step}, 9, place)));
    }
    for (std::uint64_t row = 0; row < 512; ++row) {
      rows.push_back(unit(update_noise({kSeed, kStream, step}, 3 * row, 11)));
    }
    CHECK(uneven(places) <= 2.2 * std::sqrt(static_cast<double>(places.size())));
    CHECK(uneven(rows) <= 2.2 * std::sqrt(static_cast<double>(rows.size())));
  }
}

TEST_CASE("update noise: parameters, seeds and rows begin elsewhere") {
  const RandomKey key{kSeed, kStream, 3};
  const std::uint16_t noise = update_noise(key, 4, 5);
  CHECK(update_noise(key, 4, 5) == noise);
  CHECK(update_noise(key, 7, 5) != noise);
  CHECK(update_noise(key, 4, 6) != noise);
  CHECK(update_noise({kSeed + 1, kStream, 3}, 4, 5) != noise);
  CHECK(update_noise({kSeed, kStream + 1000003, 3}, 4, 5) != noise);
  CHECK(update_noise({kSeed, kStream, 4}, 4, 5) != noise);
}

TEST_CASE("update noise: what a step's blocks have in common leaves out their offset only") {
  for (const std::uint32_t step : {0u, 1u, 65537u, ~0u}) {
    const auto common = update_noise_of_step(step);
    for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1} << 33}) {
      const RandomKey key{kSeed, kStream, step};
      const std::uint16_t offset = update_noise_offset(key, block);
      for (std::size_t place = 0; place < common.size(); ++place) {
        const std::uint32_t sum = common[place] + as_offset(offset);
        REQUIRE(sum == as_fraction(update_noise(key, block, place)));
      }
    }
  }
}

// In 65536 steps a place meets every number once, so that a steady update adds up to what it is.
TEST_CASE("update noise: a steady direction is rounded without bias") {
  constexpr Block kFirstBlock{0, 0, kBlock, 0};
  constexpr std::int64_t kSteps = 65536;
  std::vector<float> direction(kBlock);
  for (std::size_t i = 0; i < direction.size(); ++i) {
    direction[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  }
  std::vector<std::int64_t> moved(kBlock, 0);
  std::vector<std::int16_t> levels(kBlock);
  for (std::uint32_t t = 0; t < kSteps; ++t) {
    const Descent descent{0.01f, {kSeed, kStream, t}};
    const LevelRounding rounding =
        update_rounding(kFirstBlock, kBlock, descent, 21, 127, Rounding::kStochastic);
    kernels().updates.quantize_levels(levels.data(), direction.data(), rounding, kBlock);
    for (std::size_t i = 0; i < levels.size(); ++i) moved[i] += levels[i];
  }
  for (std::size_t i = 0; i < direction.size(); ++i) {
    const float exact = -0.01f * 21.0f * direction[i];
    // One unit of noise, and one step where exact + u comes to lie on a whole number.
    CHECK(std::abs(static_cast<double>(moved[i]) - static_cast<double>(kSteps) * exact) <= 2.0);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_update_noise
