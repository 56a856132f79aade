// The generator against its published known answers, and the distributions made from it.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "engine/memory/parallel.h"
#include "engine/random.h"

namespace tritgrad::test::test_random {
namespace {

double harmonic_sum() {
  return parallel_sum(100001, 10, [](std::int64_t begin, std::int64_t end) {
    double part = 0.0;
    for (std::int64_t i = begin; i < end; ++i) part += 1.0 / static_cast<double>(i + 1);
    return part;
  });
}

}  // namespace

TEST_CASE("random: Philox4x32-10 gives the known answers of Random123") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) ==
        PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: numbers depend on seed, stream, step and index, and on nothing else") {
  const RandomKey key{1, 2, 3};
  CHECK(random_bits(key, 5) == random_bits({1, 2, 3}, 5));
  CHECK(random_bits(key, 5) != random_bits({2, 2, 3}, 5));
  CHECK(random_bits(key, 5) != random_bits({1, 3, 3}, 5));
  CHECK(random_bits(key, 5) != random_bits({1, 2, 4}, 5));
  CHECK(random_bits(key, 5) != random_bits(key, 6));
  CHECK(random_u16(key, 9) == static_cast<std::uint16_t>(random_block(key, 1)[0] >> 16));
}

TEST_CASE("random: means and variances of the distributions") {
  constexpr int kN = 100000;
  double uniform = 0.0, normal = 0.0, square = 0.0;
  for (std::uint64_t i = 0; i < kN; ++i) {
    const double u = static_cast<double>(random_uniform({7, 1, 0}, i));
    const double z = static_cast<double>(random_normal({7, 2, 0}, i));
    REQUIRE((u >= 0.0 && u < 1.0));
    REQUIRE(random_below({7, 3, 0}, i, 10) < 10);
    uniform += u / kN;
    normal += z / kN;
    square += z * z / kN;
  }
  // Five standard deviations: sqrt(1/12 n), sqrt(1/n), sqrt(2/n).
  CHECK(std::abs(uniform - 0.5) < 5 * 0.00092);
  CHECK(std::abs(normal) < 5 * 0.0032);
  CHECK(std::abs(square - 1.0) < 5 * 0.0045);
}

TEST_CASE("parallel: the exception of the lowest unit arrives, sums do not depend on threads") {
  set_thread_count(1);
  const double expected = harmonic_sum();
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const auto failing = [](std::int64_t unit) {
      if (unit == 3 || unit == 7) throw std::runtime_error(std::to_string(unit));
    };
    CHECK_THROWS_WITH_AS(parallel_for(10, failing), "3", std::runtime_error);
    CHECK(harmonic_sum() == expected);
  }
  set_thread_count(0);
}

}  // namespace tritgrad::test::test_random
