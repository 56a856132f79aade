// Updates that hand their rounding errors on: the kernel for trits, and the verb of every format
// that keeps no residual.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/formats/storage.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_carried_errors {
namespace {

constexpr CarryConstants kConstants = {.lr = 0.75f, .alpha = -3.0f, .rescale = 1.25f};

}  // namespace

TEST_CASE("carried errors: trits move as in the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    const auto trit = [](std::int64_t i) { return static_cast<std::int8_t>(i * 7 % 3 - 1); };
    Guarded<float> direction = floats(n, offset, 41), gain = floats(n, offset, 42);
    Guarded<std::uint16_t> noise = noise_bits(n, offset);
    for (const float* its_gain : {gain.data(), static_cast<float*>(nullptr)}) {
      for (const std::uint16_t* its_noise : {noise.data(), static_cast<std::uint16_t*>(nullptr)}) {
        Twins<std::int8_t> trits(n, offset, trit);
        Twins<float> m(n, offset, [](std::int64_t i) { return awkward_float(i, 43); });
        const std::int64_t expected = reference_kernels().updates.carry_trits(
            trits.expected.data(), m.expected.data(), direction.data(), its_gain, kConstants,
            its_noise, n);
        CHECK(table.updates.carry_trits(trits.actual.data(), m.actual.data(), direction.data(),
                                        its_gain, kConstants, its_noise, n) == expected);
        REQUIRE(same_bits(trits.expected, trits.actual, n));
        REQUIRE(same_bits(m.expected, m.actual, n, true));
      }
    }
  });
}

TEST_CASE("carried errors: the reference is the formula, in double") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int trit : {-1, 0, 1}) {
    // Up to ties, to both clamps and beyond. 0.75 times 2/3 rounds to 1/2; other products are
    // exact.
    for (const float direction : {0.0f, 0.5f, -0.5f, 2.0f / 3, 1.0f, -1.0f, 1.5f, 2.0f, -2.0f, 1e9f,
                                  -1e9f, 0.25f, -0.125f, kNan}) {
      for (const int noise : {-1, 0, 0x4000, 0x8000, 0xFFFF}) {
        for (const float gain : {0.0f, 0.5f}) {  // 0: none
          CAPTURE(trit);
          CAPTURE(direction);
          CAPTURE(noise);
          auto stored = static_cast<std::int8_t>(trit);
          float momentum = 0.25f;
          const auto bits = static_cast<std::uint16_t>(noise);
          const std::int64_t changed = reference_kernels().updates.carry_trits(
              &stored, &momentum, &direction, gain == 0.0f ? nullptr : &gain, kConstants,
              noise < 0 ? nullptr : &bits, 1);
          const float exact = static_cast<float>(trit) - 0.75f * direction;
          const double wanted = std::isnan(exact) ? 0.0 : std::clamp(double{exact}, -1.5, 1.5);
          const double level =
              noise < 0 ? std::nearbyint(wanted) : std::floor(wanted + (noise + 0.5) / 65536);
          const double expected = std::clamp(level, -1.0, 1.0);
          CHECK(static_cast<double>(stored) == expected);
          CHECK(changed == (stored != trit));
          const double error = -3.0 * (wanted - expected) / (gain == 0.0f ? 1.0 : double{gain});
          // Of numbers up to 0.25 + 3: the difference, product, sum and last product of floats.
          const double bound = 4 * 0x1p-24 * 1.25 * (0.25 + std::abs(error));
          CHECK(std::abs(double{momentum} - 1.25 * (0.25 + error)) <= bound);
        }
      }
    }
  }
}

TEST_CASE("carried errors: what a format does not store is in the momentum") {
  constexpr std::int64_t kRows = 2, kCols = kBlock + 37;
  constexpr float kAlpha = 0.5f;
  for (FormatKind kind : formats_for(kWeight)) {
    if (format_traits(kind).has_residual) continue;
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      CAPTURE(std::string(format_name(kind)));
      Storage storage(spec_of(kind, rounding), {kRows, kCols}, Category::kWeights);
      encode_all(storage, numbers(kRows * kCols, 44));
      const std::vector<double> before = decoded(storage);
      const std::vector<float> direction = numbers(kRows * kCols, 45);
      std::vector<float> momentum(direction.size(), 0.0f);
      const Descent descent(1.0f, {1, 2, 3});
      FlipCounts counts;
      for_each_block(storage.shape(), [&](const Block& block) {
        const std::int64_t first = block.row * kCols + block.col;
        const ErrorFeedback feedback{momentum.data() + first, nullptr, kAlpha, 1.0f};
        const Direction of_block = direction.data() + first;
        counts += storage.descend({{block}, {&of_block, 1}, descent, nullptr, &feedback});
      });
      const std::vector<double> after = decoded(storage);
      std::int64_t changed = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        // Exact in double; the float's two differences are rounded.
        double wanted = before[i] - double{direction[i]};
        if (format_traits(kind).is_ternary) wanted = std::clamp(wanted, -1.5, 1.5);
        const double error = wanted - after[i];
        REQUIRE(std::abs(double{momentum[i]} - kAlpha * error) <=
                0x1p-24 * (std::abs(wanted) + std::abs(error)));
        changed += before[i] != after[i];
      }
      CHECK(changed > 0);
      CHECK(counts.flips == (format_traits(kind).is_ternary ? changed : 0));
    }
  }
}

}  // namespace tritgrad::test::test_carried_errors
