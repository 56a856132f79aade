// Values of fp32 masters: their kernels on every instruction set, and that a comparison with half
// of gamma is what a division by gamma says.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/random.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_ternary_master {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns the value as BitNet b1.58 has it, in floats: gamma clip(rint(w / gamma), -1, 1).
float value_of(float master, float gamma) {
  return gamma * std::fmin(std::fmax(std::nearbyint(master / gamma), -1.0f), 1.0f);
}

float decoded(float master, float gamma) {
  float value;
  reference_kernels().codecs.decode_ternary_master(&value, &master, gamma, 1);
  return value;
}

// Checks masters around half of gamma, the only place where a rounding could decide.
void check_half(float gamma) {
  CAPTURE(gamma);
  for (const float sign : {1.0f, -1.0f}) {
    float master = sign * 0.5f * gamma;
    for (int i = 0; i < 4; ++i) master = std::nextafter(master, 0.0f);
    for (int i = 0; i < 9; ++i) {
      CHECK(decoded(master, gamma) == value_of(master, gamma));
      master = std::nextafter(master, sign * kInfinity);
    }
  }
}

}  // namespace

TEST_CASE("ternary_master: half of gamma decides as a division would") {
  for (const float gamma : {1e-5f, 0x1p-10f, 0.5f, std::nextafter(0.5f, 1.0f),
                            std::nextafter(1.0f, 0.0f), 1.0f, 0.7f, 1e10f}) {
    check_half(gamma);
  }
  for (std::uint64_t i = 0; i < 1000; ++i) check_half(0.01f + random_uniform({1, 2, 3}, i));
}

TEST_CASE("ternary_master: values, what is not finite among them, and sums of magnitudes") {
  for (const float master : {0.0f, -0.0f, 0.3f, -0.3f, 1.0f, -1.0f, 1e30f, -1e30f, 1e-40f}) {
    CAPTURE(master);
    CHECK(decoded(master, 0.4f) == value_of(master, 0.4f));
  }
  for (const float master : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(std::isnan(decoded(master, 0.4f)));
    // As the mean of magnitudes then is.
    CHECK(std::isnan(decoded(0.1f, std::abs(master))));
  }
  const std::vector<float> numbers = {0.5f, -0.25f, -0.0f, 3.0f};
  CHECK(reference_kernels().reductions.sum_of_magnitudes(numbers.data(), 4) == 3.75);
}

TEST_CASE("ternary_master: an update counts the values that change") {
  // From each value to each, by a step that ends in its middle.
  for (const float from : {-0.4f, 0.0f, 0.4f}) {
    for (const float to : {-0.4f, 0.0f, 0.4f}) {
      float master = from;
      const float direction = 2.0f * (from - to);
      CHECK(reference_kernels().updates.descend_ternary_master(&master, &direction, 0.5f, 0.4f,
                                                               1) == (from != to));
      CHECK(decoded(master, 0.4f) == to);
    }
  }
}

TEST_CASE("ternary_master: kernels equal the reference") {
  const KernelTables& reference = reference_kernels();
  for_each_case([&](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> direction = floats(n, offset, 51);
    Twins<float> master(n, offset, [](std::int64_t i) { return awkward_float(i, 52); });
    Twins<float> values(n, offset);
    Guarded<float> finite(n, offset);
    for (std::int64_t i = 0; i < n; ++i) {
      finite[i] = random_uniform({4, 5, 6}, static_cast<std::uint64_t>(i)) - 0.5f;
    }
    CHECK(table.reductions.sum_of_magnitudes(finite.data(), n) ==
          reference.reductions.sum_of_magnitudes(finite.data(), n));
    reference.codecs.decode_ternary_master(values.expected.data(), master.expected.data(), 0.4f, n);
    table.codecs.decode_ternary_master(values.actual.data(), master.actual.data(), 0.4f, n);
    REQUIRE(same_bits(values.expected, values.actual, n, true));
    CHECK(table.updates.descend_ternary_master(master.actual.data(), direction.data(), 0.3f, 0.4f,
                                               n) ==
          reference.updates.descend_ternary_master(master.expected.data(), direction.data(), 0.3f,
                                                   0.4f, n));
    REQUIRE(same_bits(master.expected, master.actual, n, true));
  });
}

}  // namespace tritgrad::test::test_ternary_master
