// Activations and their gradients: every table against the reference and against the formulas.
#include <cmath>
#include <limits>

#include "tests/support/kernel_comparison.h"

namespace tritgrad::test::test_kernel_activations {
namespace {

TEST_CASE("kernel activations: rectifiers equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> x = floats(n, offset, 1);
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) { t.layers.relu(out, x.data(), n); },
        [&](std::int64_t i, float) { return x[i] < 0.0f ? 0.0f : x[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) { t.layers.rectify_gradient(out, x.data(), n); },
        [&](std::int64_t i, float dy) { return dy * (x[i] > 0.0f ? 1.0f : 0.0f); });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) { t.layers.squared_relu(out, x.data(), n); },
        [&](std::int64_t i, float) { return x[i] < 0.0f ? 0.0f : x[i] * x[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) {
          t.layers.squared_relu_gradient(out, x.data(), n);
        },
        [&](std::int64_t i, float dy) { return dy * (x[i] > 0.0f ? 2.0f * x[i] : 0.0f); });
  });
}

// Half of the numbers between -12 and 12, beyond which tanh is 1; the others awkward ones.
float argument(std::int64_t i) {
  const RandomKey key{11, 12, 13};
  const auto index = static_cast<std::uint64_t>(i);
  return i % 2 == 0 ? awkward_float(i, 2) : 24.0f * random_uniform(key, index) - 12.0f;
}

TEST_CASE("kernel activations: tanh equals the reference, and its gradient the formula") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> x(n, offset);
    for (std::int64_t i = 0; i < n; ++i) x[i] = argument(i);
    Twins<float> y(n, offset);
    reference_kernels().layers.tanh(y.expected.data(), x.data(), n);
    table.layers.tanh(y.actual.data(), x.data(), n);
    REQUIRE(same_bits(y.expected, y.actual, n, true));
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* out) { t.layers.tanh_gradient(out, x.data(), n); },
        [&](std::int64_t i, float dy) { return dy * (1.0f - x[i] * x[i]); });
  });
}

// In units of 2^-24 of the result. From 0.625 on, where it is 0.5546 or more: the difference is
// rounded by half a unit in the last place of [1/2, 1), 0.9; the quotient, of [1/4, 1/2) at most,
// 0.45; e^2x + 1, relatively 1, of a quotient of 0.445 at most, 0.8; and e^2x, relatively 2, of
// which 0.78 is in the sum, 1.25. Below: the sum is rounded, 1, and five roundings are of a product
// of at most 0.13 x, 0.7.
TEST_CASE("kernel activations: tanh is within 3.5 units of 2^-24 of the exact one") {
  for (int exponent = -149; exponent < 128; ++exponent) {
    for (int i = 0; i < 300; ++i) {
      const float x = std::ldexp(1.0f + static_cast<float>(i) / 300.0f, exponent);
      for (const float argument : {x, -x}) {
        float y;
        reference_kernels().layers.tanh(&y, &argument, 1);
        const double exact = std::tanh(double{argument});
        REQUIRE(std::abs(double{y} - exact) <= 3.5 * 0x1p-24 * std::abs(exact));
      }
    }
  }
}

TEST_CASE("kernel activations: corners of tanh") {
  const auto tanh = [](float x) {
    float y;
    reference_kernels().layers.tanh(&y, &x, 1);
    return y;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(tanh(kInfinity) == 1.0f);
  CHECK(tanh(-kInfinity) == -1.0f);
  CHECK(tanh(9.02f) == 1.0f);
  CHECK(tanh(0.0f) == 0.0f);
  CHECK(std::signbit(tanh(-0.0f)));
  CHECK(std::isnan(tanh(std::nanf(""))));
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_activations
