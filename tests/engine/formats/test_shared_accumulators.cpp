// Accumulators that several weights share: who has one, when it is free again, and what that means
// for a weight whose gradient lasts and for one whose gradient is chance.
#include <cmath>

#include "engine/formats/shared_accumulator.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_shared_accumulators {
namespace {

using Trits = std::vector<std::int8_t>;
using Levels = std::vector<int>;

struct Group {
  SharedAccumulator state;
  Trits trits = {0, 0, 0, 0};
  FlipCounts counts = {};

  void update(const Levels& levels, int turn = 0, int sharing = 4) {
    const std::int8_t byte = update_shared(pack_shared(state, sharing), trits.data(), levels.data(),
                                           static_cast<int>(trits.size()), sharing, turn, counts);
    state = unpack_shared(byte, sharing);
  }
};

TEST_CASE("shared: a free accumulator goes to the largest update that its trit can follow") {
  Group group;
  group.update({1, -5, 2, 0});
  CHECK(group.state == SharedAccumulator{-5, 1});
  // Of equal ones to the first from `turn` on, cyclically.
  for (const auto& [turn, owner] : {std::pair{0, 1}, {1, 1}, {2, 3}, {3, 3}}) {
    Group equal;
    equal.update({0, 3, 2, -3}, turn);
    CHECK(equal.state.owner == owner);
  }
  Group rails;
  rails.trits = {1, -1, 1, -1};
  rails.update({9, -8, 7, -6});
  CHECK(rails.state == SharedAccumulator{});
  rails.update({9, -8, -2, 1});
  CHECK(rails.state == SharedAccumulator{-2, 2});
  CHECK(rails.counts.flips + rails.counts.rail_flips == 0);
}

TEST_CASE("shared: the owner collects; at zero, past it and after a flip the accumulator is free") {
  Group group;
  group.state = {10, 2};
  group.update({31, 31, -9, 31});
  CHECK(group.state == SharedAccumulator{1, 2});
  // Back at zero: the others ask, the owner is passed over. Past it likewise.
  Group at_zero = group, past_zero = group;
  at_zero.update({3, 0, -1, 0});
  CHECK(at_zero.state == SharedAccumulator{3, 0});
  past_zero.update({0, 0, -31, 0});
  CHECK(past_zero.state == SharedAccumulator{});
  // 31 is the most that fits, one more is a flip, and what is left of it is dropped.
  group.update({0, 0, 30, 0});
  CHECK(group.state == SharedAccumulator{31, 2});
  group.update({0, 2, 31, 0});
  CHECK(group.state == SharedAccumulator{2, 1});
  CHECK(group.trits == Trits{0, 0, 1, 0});
  CHECK(group.counts.flips == 1);
  // An owner at its rail: no flip, but free again.
  group.state = {31, 2};
  group.update({0, 0, 1, 0});
  CHECK(group.state == SharedAccumulator{});
  CHECK(group.trits == Trits{0, 0, 1, 0});
  CHECK((group.counts.flips == 1 && group.counts.rail_flips == 1));
}

TEST_CASE("shared: every byte reads as a legal state") {
  for (int sharing : {4, 8, 16}) {
    for (int byte = -128; byte <= 127; ++byte) {
      const SharedAccumulator state = unpack_shared(static_cast<std::int8_t>(byte), sharing);
      CHECK(std::abs(state.accumulator) <= shared_threshold(sharing));
      CHECK((state.owner >= 0 && state.owner < sharing));
      if (state.accumulator > -shared_threshold(sharing)) {
        CHECK(pack_shared(state, sharing) == byte);
      }
    }
  }
}

// Levels are +-1 by the toss of a coin (larger ones overshoot), so what an accumulator begins with,
// 1, is L + 1 before it is 0 with the probability 1 / (L + 1). Of n beginnings the share that flips
// scatters by sqrt(p (1 - p) / n); four times that is allowed.
TEST_CASE("shared: while updates are chance, an accumulator is a gambler who may be ruined") {
  for (int sharing : {4, 8, 16}) {
    const RandomKey key{7, random_stream("gambler"), 0};
    std::uint64_t toss = 0;
    std::int64_t beginnings = 0;
    Group group;
    group.trits.assign(static_cast<std::size_t>(sharing), 0);
    Levels levels(group.trits.size(), 0);
    while (beginnings < 40000) {
      if (group.state.accumulator == 0) {
        // Trits at rest in the middle: no rail has a part in this.
        std::fill(group.trits.begin(), group.trits.end(), std::int8_t{0});
        ++beginnings;
      }
      std::fill(levels.begin(), levels.end(), 0);
      levels[static_cast<std::size_t>(group.state.owner)] =
          (random_bits(key, toss++) & 1) != 0 ? 1 : -1;
      group.update(levels, 0, sharing);
    }
    const double p = 1.0 / (shared_threshold(sharing) + 1), n = static_cast<double>(beginnings);
    const double share = static_cast<double>(group.counts.flips) / n;
    CAPTURE(sharing);
    CHECK(std::abs(share - p) <= 4.0 * std::sqrt(p * (1.0 - p) / n));
  }
}

TEST_CASE("shared: a gradient that lasts moves its trit, among neighbours whose gradients do not") {
  for (FormatKind kind : {FormatKind::kShared4, FormatKind::kShared8, FormatKind::kShared16}) {
    CAPTURE(std::string(format_name(kind)));
    constexpr std::int64_t kCols = 323;
    // An accumulator is free again after some 25 steps, and 1 in 16 of those that ask has it next.
    constexpr std::uint32_t kSteps = 4000;
    Storage storage(spec_of(kind, Rounding::kStochastic), {2, kCols}, Category::kWeights);
    std::vector<float> direction(2 * kCols);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      for (std::size_t i = 0; i < direction.size(); ++i) {
        const std::uint32_t bits = random_bits({1, 2, step}, i);
        direction[i] = i % 16 == 5 ? -1.0f : (bits >> 31 == 0 ? 1.0f : -1.0f);
      }
      for_each_block(storage.shape(), [&](const Block& block) {
        descend_block(storage, block, direction.data() + block.row * kCols + block.col,
                      {0.02f, {1, 2, step}});
      });
    }
    const std::vector<double> values = decoded(storage);
    double others = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % 16 == 5) {
        CHECK(values[i] == 1.0);
      } else {
        others += values[i];
      }
    }
    // Each of the others is -1, 0 or 1 by chance: their mean scatters by 1 / sqrt(n) at most.
    const double n = static_cast<double>(values.size()) * 15.0 / 16.0;
    CHECK(std::abs(others / n) <= 4.0 / std::sqrt(n));
  }
}

TEST_CASE("shared: golden bytes, and the master that they are") {
  Storage storage(spec_of(FormatKind::kShared8), {1, 11}, Category::kWeights);
  encode_all(storage, {0, 0.4f, -1, 0, -0.3f, 0, 0, 1, 0, 0.6f, 0});
  std::vector<double> values = {0, 0, -1, 0, 0, 0, 0, 1, 0, 1, 0};
  CHECK(decoded(storage) == values);
  CHECK(decoded(storage, true) == values);  // what trits leave has no place yet
  // 31 levels to a trit: number 4 of the first group asks for -9, number 1 of the second for -14.
  std::vector<float> direction(11, 0.0f);
  direction[4] = 9.0f / 31.0f;
  direction[9] = 14.0f / 31.0f;
  descend_block(storage, {0, 0, 11}, direction.data(), {1.0f, {}});
  const std::vector<Plane> planes = storage.planes();
  // Three bytes of five digits, trit + 1, the lowest first: elements 0, 3, 6, 9; 1, 4, 7, 10; 2,
  // 5, 8.
  REQUIRE(planes[0].bytes.size() == 3);
  CHECK(static_cast<int>(planes[0].bytes[0]) == 1 + 3 * 1 + 9 * 1 + 27 * 2 + 81 * 1);
  CHECK(static_cast<int>(planes[0].bytes[1]) == 1 + 3 * 1 + 9 * 2 + 27 * 1 + 81 * 1);
  CHECK(static_cast<int>(planes[0].bytes[2]) == 0 + 3 * 1 + 9 * 1 + 27 * 1 + 81 * 1);
  REQUIRE(planes[1].bytes.size() == 2);
  CHECK(static_cast<std::int8_t>(planes[1].bytes[0]) == -9 * 8 + 4);
  CHECK(static_cast<std::int8_t>(planes[1].bytes[1]) == -14 * 8 + 1);
  CHECK(decoded(storage) == values);
  values[4] -= 9.0 / 31.0;
  values[9] -= 14.0 / 31.0;
  const std::vector<double> masters = decoded(storage, true);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // In fp32 1 / 31, its product and the sum are each rounded by 2^-24 of less than 1.
    CHECK(std::abs(masters[i] - values[i]) <= 3.0 * 0x1p-24);
  }
}

TEST_CASE("shared: of equal updates that whose turn it is by the number of the step counts") {
  for (std::uint32_t step : {1u, 2u, 3u, 4u, 7u}) {
    Storage storage(spec_of(FormatKind::kShared4), {1, 4}, Category::kWeights);
    const std::vector<float> direction(4, 5.0f / 63.0f);
    descend_block(storage, {0, 0, 4}, direction.data(), {1.0f, {0, 0, step}});
    const std::byte byte = storage.planes()[1].bytes[0];
    CHECK(static_cast<std::int8_t>(byte) == -5 * 4 + static_cast<int>(step % 4));
  }
}

// ---- the kernels -------------------------------------------------------------------------------

FlipCounts descend_shared(const KernelTables& table, std::int8_t* trits, std::int8_t* shared,
                          const Direction& direction, const LevelRounding& rounding, int sharing,
                          int turn, std::int64_t n) {
  FlipCounts counts;
  table.updates.descend_shared(&counts, trits, 0, shared, 0, {&direction, &rounding, 1, n}, sharing,
                               turn);
  return counts;
}

void compare_shared(const KernelTables& table, std::int64_t n, std::int64_t offset, int sharing,
                    int turn, const Direction& direction, const LevelRounding& rounding) {
  const std::int64_t groups = (n + sharing - 1) / sharing;
  const auto trits = [&] {
    Guarded<std::int8_t> x(n, offset);
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<std::int8_t>(i * 7 % 3 - 1);
    return x;
  };
  const auto shared = [&] {
    Guarded<std::int8_t> x(groups, offset);
    for (std::int64_t i = 0; i < groups; ++i) x[i] = static_cast<std::int8_t>(i * 37 + offset);
    return x;
  };
  Guarded<std::int8_t> actual_trits = trits(), expected_trits = trits();
  Guarded<std::int8_t> actual = shared(), expected = shared();
  // Several updates, so that what one has made is where the next begins.
  for (int step = 0; step < 3; ++step) {
    const int now = (turn + step) % sharing;
    const FlipCounts counts = descend_shared(table, actual_trits.data(), actual.data(), direction,
                                             rounding, sharing, now, n);
    const FlipCounts of_reference =
        descend_shared(reference_kernels(), expected_trits.data(), expected.data(), direction,
                       rounding, sharing, now, n);
    REQUIRE_MESSAGE(same_bits(actual_trits, expected_trits, n), table.name, " n=", n);
    REQUIRE_MESSAGE(same_bits(actual, expected, groups), table.name, " n=", n);
    REQUIRE((counts.flips == of_reference.flips && counts.rail_flips == of_reference.rail_flips));
  }
}

TEST_CASE("kernels: descend_shared handles every length, start, turn and noise") {
  std::int64_t turn = 0;
  for (const KernelTables* table : supported_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      for (std::int64_t offset : {0, 1, 13}) {
        Guarded<float> numbers(n, offset);
        Guarded<std::int32_t> sums(n, offset);
        Guarded<std::uint32_t> noise(n, offset);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint32_t bits = random_bits({9, 9, 9}, static_cast<std::uint64_t>(i));
          numbers[i] = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
          sums[i] = static_cast<std::int32_t>(bits >> 12) - 500000;
          noise[i] = as_fraction(static_cast<std::uint16_t>(bits));
        }
        if (n > 3) numbers[n / 2] = NAN, numbers[n / 3] = INFINITY;
        for (int sharing : {4, 8, 16}) {
          const int most = shared_threshold(sharing);
          const float scale = static_cast<float>(2 * most + 1);
          const int now = static_cast<int>(turn++ % sharing);
          for (const LevelRounding& rounding :
               {LevelRounding{scale, most, noise.data(), as_offset(30000)},
                LevelRounding{0.1f * scale, most, nullptr}, LevelRounding{1.5f, 1, noise.data()}}) {
            compare_shared(*table, n, offset, sharing, now, numbers.data(), rounding);
            compare_shared(*table, n, offset, sharing, now, Direction(sums.data(), 77, 3e-6f),
                           rounding);
            compare_shared(*table, n, offset, sharing, now, Direction(numbers.data(), 0.5f, true),
                           rounding);
          }
        }
      }
    }
  }
}

TEST_CASE("kernels: descend_shared is update_shared() of every byte, trit and level of an owner") {
  for (int sharing : {4, 8, 16}) {
    const int most = shared_threshold(sharing);
    Trits trits, shared;
    std::vector<float> direction;
    for (int byte = -128; byte <= 127; ++byte) {
      for (int level = -most; level <= most; ++level) {
        for (int trit = -1; trit <= 1; ++trit) {
          shared.push_back(static_cast<std::int8_t>(byte));
          for (int i = 0; i < sharing; ++i) {
            const bool owns = i == (byte & (sharing - 1));
            trits.push_back(static_cast<std::int8_t>(owns ? trit : (i + byte) % 2));
            direction.push_back(static_cast<float>(owns ? -level : (i + level) % 3));
          }
        }
      }
    }
    Trits expected_trits = trits, expected = shared;
    FlipCounts expected_counts;
    for (std::size_t group = 0; group < shared.size(); ++group) {
      const std::size_t first = group * static_cast<std::size_t>(sharing);
      Levels levels;
      for (int i = 0; i < sharing; ++i) {
        levels.push_back(-static_cast<int>(direction[first + static_cast<std::size_t>(i)]));
      }
      expected[group] = update_shared(shared[group], expected_trits.data() + first, levels.data(),
                                      sharing, sharing, 1, expected_counts);
    }
    for (const KernelTables* table : supported_kernels()) {
      CAPTURE(table->name);
      Trits actual_trits = trits, actual = shared;
      const FlipCounts counts =
          descend_shared(*table, actual_trits.data(), actual.data(), direction.data(),
                         {1.0f, most, nullptr}, sharing, 1, std::ssize(trits));
      REQUIRE(actual_trits == expected_trits);
      REQUIRE(actual == expected);
      REQUIRE(counts.flips == expected_counts.flips);
      REQUIRE(counts.rail_flips == expected_counts.rail_flips);
    }
  }
}

}  // namespace
}  // namespace tritgrad::test::test_shared_accumulators
