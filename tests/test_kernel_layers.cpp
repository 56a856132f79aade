// The loops of layers: every table against the reference, and the reference against its formula.
#include <doctest/doctest.h>

#include <array>

#include "tests/kernel_inputs.h"

namespace tritgrad {
namespace {

struct Inputs {
  Inputs(std::int64_t n, std::int64_t offset)
      : a(floats(n, offset, 1)),
        b(floats(n, offset, 2)),
        c(floats(n, offset, 3)),
        d(floats(n, offset, 4)),
        e(floats(n, offset, 5)),
        means(n, offset) {
    for (std::int64_t i = 0; i < n; ++i) means[i] = double{awkward_float(i, 6)};
  }
  Guarded<float> a, b, c, d, e;
  Guarded<double> means;
};

// Runs body(table, out) for the reference and the table; the results must agree with each other
// and with formula(i, value before).
template <typename T, typename Body, typename Formula>
void compare(const KernelTable& table, std::int64_t n, std::int64_t offset, const Body& body,
             const Formula& formula) {
  const auto start = [](std::int64_t i) { return static_cast<T>(awkward_float(i, 7)); };
  Twins<T> out(n, offset, start);
  body(reference_kernels(), out.expected.data());
  body(table, out.actual.data());
  REQUIRE(same_bits(out.expected, out.actual, n, true));
  for (std::int64_t i = 0; i < n; ++i) {
    const T expected = formula(i, start(i));
    REQUIRE((std::isnan(expected) ? std::isnan(out.actual[i]) : out.actual[i] == expected));
  }
}

TEST_CASE("kernel layers: elementwise loops equal the reference and their formulas") {
  for_each_case([](const KernelTable& table, std::int64_t n, std::int64_t offset) {
    Inputs x(n, offset);
    compare<float>(
        table, n, offset, [&](const KernelTable& t, float* out) { t.relu(out, x.a.data(), n); },
        [&](std::int64_t i, float) { return x.a[i] < 0.0f ? 0.0f : x.a[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTable& t, float* out) { t.rectify_gradient(out, x.a.data(), n); },
        [&](std::int64_t i, float dy) { return dy * (x.a[i] > 0.0f ? 1.0f : 0.0f); });
    compare<float>(
        table, n, offset,
        [&](const KernelTable& t, float* out) {
          t.standardize(out, x.a.data(), x.b.data(), x.c.data(), n);
        },
        [&](std::int64_t i, float) { return (x.a[i] - x.b[i]) * x.c[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTable& t, float* out) {
          t.scale_and_shift(out, x.a.data(), x.b.data(), x.c.data(), n);
        },
        [&](std::int64_t i, float) { return x.a[i] * x.b[i] + x.c[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTable& t, float* out) {
          t.standardize_gradient(out, x.b.data(), x.c.data(), x.d.data(), x.e.data(), n);
        },
        [&](std::int64_t i, float dy) { return x.c[i] * (dy - x.d[i] - x.b[i] * x.e[i]); });
  });
}

TEST_CASE(
    "kernel layers: sums down columns and along rows equal the reference and their formulas") {
  for_each_case([](const KernelTable& table, std::int64_t n, std::int64_t offset) {
    Inputs x(n, offset);
    compare<double>(
        table, n, offset,
        [&](const KernelTable& t, double* sums) { t.add_to_sums(sums, x.a.data(), n); },
        [&](std::int64_t i, double sum) { return sum + double{x.a[i]}; });
    compare<double>(
        table, n, offset,
        [&](const KernelTable& t, double* sums) {
          t.add_squares_around(sums, x.a.data(), x.means.data(), n);
        },
        [&](std::int64_t i, double sum) {
          const double centered = double{x.a[i]} - x.means[i];
          return sum + centered * centered;
        });
    compare<double>(
        table, n, offset,
        [&](const KernelTable& t, double* sums) {
          t.add_products(sums, x.a.data(), x.b.data(), n);
        },
        [&](std::int64_t i, double sum) { return sum + double{x.a[i]} * double{x.b[i]}; });

    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x.a[i])) x.a[i] = 1.0f;
    }
    std::array<double, 16> lanes{};
    for (std::int64_t i = 0; i < n; ++i) lanes[static_cast<std::size_t>(i % 16)] += double{x.a[i]};
    double total = 0.0;
    for (double lane : lanes) total += lane;
    REQUIRE(table.sum(x.a.data(), n) == total);
    REQUIRE(reference_kernels().sum(x.a.data(), n) == total);
  });
}

}  // namespace
}  // namespace tritgrad
