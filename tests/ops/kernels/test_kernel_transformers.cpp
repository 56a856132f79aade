// The loops of transformers: every table against the reference, and the reference against exact
// values.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/kernel_comparison.h"

namespace tritgrad::test::test_kernel_transformers {
namespace {

// Half of the numbers between -100 and 100, beyond which e^x is nothing; the others awkward ones.
float argument(std::int64_t i) {
  const auto index = static_cast<std::uint64_t>(i);
  return i % 2 == 0 ? awkward_float(i, 2) : 200.0f * random_uniform({11, 12, 13}, index) - 100.0f;
}

struct GatedUnit {
  float y, dgate, dup;
};
GatedUnit gated(float gate, float up, float dy) {
  const LayerKernels& layers = reference_kernels().layers;
  GatedUnit unit{0.0f, 0.0f, dy};
  layers.swiglu(&unit.y, &gate, &up, 1);
  layers.swiglu_gradient(&unit.dgate, &unit.dup, &gate, &up, 1);
  return unit;
}

}  // namespace

TEST_CASE("kernel transformers: pairs are turned as the formula says") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> cosines = floats(n, offset, 1), sines = floats(n, offset, 2);
    compare<float>(
        table, 2 * n, offset,
        [&](const KernelTables& t, float* x) {
          t.layers.rotate_pairs(x, cosines.data(), sines.data(), n);
        },
        [&](std::int64_t i, float before) {
          const float other = awkward_float(i ^ 1, 7);
          const float c = cosines[i / 2], s = sines[i / 2];
          return i % 2 == 0 ? before * c - other * s : other * s + before * c;
        });
  });
}

TEST_CASE("kernel transformers: gated units equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> gate(n, offset), up = floats(n, offset, 3);
    for (std::int64_t i = 0; i < n; ++i) gate[i] = argument(i);
    Twins<float> y(n, offset), dgate(n, offset);
    Twins<float> dy(n, offset, [](std::int64_t i) { return awkward_float(i, 4); });
    const auto run = [&](const LayerKernels& layers, Guarded<float> Twins<float>::*side) {
      layers.swiglu((y.*side).data(), gate.data(), up.data(), n);
      layers.swiglu_gradient((dgate.*side).data(), (dy.*side).data(), gate.data(), up.data(), n);
    };
    run(reference_kernels().layers, &Twins<float>::expected);
    run(table.layers, &Twins<float>::actual);
    for (Twins<float>* twins : {&y, &dgate, &dy}) {
      REQUIRE(same_bits(twins->expected, twins->actual, n, true));
    }
  });
}

// In units of 2^-24: e^-|x| is within 2; 1 / (1 + e) adds the rounding of the sum, of the quotient
// and, of e, half at most, so that s and 1 - s are within 4 (one of them is e / (1 + e), in which
// e cancels by half as well). silu: one product more, 5; y: 6. dgate: silu and 1 - s and their
// product, 10, the sum with s, 11, and two products, 13, of the sum of magnitudes.
TEST_CASE("kernel transformers: gated units are as near the exact ones as the contract says") {
  const float up = 0.8125f, dy = -1.375f;
  for (int i = -80'000; i <= 80'000; ++i) {
    const float x = static_cast<float>(i) * 1.0625e-3f;
    const GatedUnit unit = gated(x, up, dy);
    const double gate = double{x}, s = 1.0 / (1.0 + std::exp(-gate));
    const double rest = 1.0 / (1.0 + std::exp(gate)), silu = gate * s;
    REQUIRE(std::abs(double{unit.y} - silu * double{up}) <=
            6 * 0x1p-24 * std::abs(silu * double{up}));
    REQUIRE(std::abs(double{unit.dup} - silu * double{dy}) <=
            6 * 0x1p-24 * std::abs(silu * double{dy}));
    const double factor = double{dy} * double{up};
    REQUIRE(std::abs(double{unit.dgate} - factor * (s + silu * rest)) <=
            13 * 0x1p-24 * std::abs(factor) * (s + std::abs(silu * rest)));
  }
}

TEST_CASE("kernel transformers: corners of gated units") {
  constexpr float kMost = std::numeric_limits<float>::max();
  const float nan = std::nanf("");
  CHECK(gated(0.0f, 3.0f, 2.0f).y == 0.0f);
  CHECK(gated(0.0f, 3.0f, 2.0f).dgate == 3.0f);  // dy up / 2
  CHECK(gated(kMost, 1.0f, 1.0f).y == kMost);
  CHECK(gated(kMost, 1.0f, 1.0f).dgate == 1.0f);
  for (const float low : {-87.4f, -1000.0f, -kMost}) {
    CHECK(gated(low, 1.0f, 1.0f).y == 0.0f);
    CHECK(gated(low, 1.0f, 1.0f).dgate == 0.0f);
    CHECK(gated(low, 1.0f, 1.0f).dup == 0.0f);
  }
  CHECK(std::isnan(gated(nan, 1.0f, 1.0f).y));
  CHECK(std::isnan(gated(nan, 1.0f, 1.0f).dgate));
  CHECK(std::isnan(gated(nan, 1.0f, 1.0f).dup));
  CHECK(std::isnan(gated(1.0f, nan, 1.0f).y));
}

}  // namespace tritgrad::test::test_kernel_transformers
