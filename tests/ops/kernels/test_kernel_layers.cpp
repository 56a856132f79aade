// The loops of layers, of norms and of activations: every table against the reference, and the
// reference against its formulas.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/support/kernel_comparison.h"

namespace tritgrad::test::test_kernel_layers {
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

TEST_CASE("kernel layers: square roots equal the reference and are rounded correctly") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    compare<float>(
        table, n, offset, [&](const KernelTables& t, float* out) { t.layers.square_roots(out, n); },
        [](std::int64_t, float x0) { return std::sqrt(x0); });
  });
}

TEST_CASE("kernel layers: batch norm, its sums and its gradient equal the reference and formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Inputs in(n, offset);
    Guarded<float> x = floats(n, offset, 8), given = floats(n, offset, 9);
    for (const bool rectify : {false, true}) {
      const NormColumns columns{in.a.data(), in.b.data(), in.c.data(), in.d.data(), rectify};
      const auto z = [&](std::int64_t i) { return (x[i] - in.a[i]) * in.b[i]; };
      const auto shifted = [&](std::int64_t i) { return z(i) * in.c[i] + in.d[i]; };
      const auto passed = [&](std::int64_t i, float dy) {
        return rectify ? dy * (shifted(i) > 0.0f ? 1.0f : 0.0f) : dy;
      };
      compare<float>(
          table, n, offset,
          [&](const KernelTables& t, float* y) {
            t.layers.batch_norm(y, n, x.data(), n, columns, 1, n);
          },
          [&](std::int64_t i, float) { return rectify && shifted(i) < 0.0f ? 0.0f : shifted(i); });
      // Of the three that it writes, one is looked at, the others are spare.
      Guarded<double> spare(n, offset);
      compare<float>(
          table, n, offset,
          [&](const KernelTables& t, float* dy) {
            Guarded<double> other(n, offset);
            t.layers.add_batch_norm_sums(spare.data(), other.data(), dy, x.data(), n, columns, 1,
                                         n);
          },
          passed);
      compare<double>(
          table, n, offset,
          [&](const KernelTables& t, double* sum_dy) {
            Guarded<float> dy = floats(n, offset, 9);
            t.layers.add_batch_norm_sums(sum_dy, spare.data(), dy.data(), x.data(), n, columns, 1,
                                         n);
          },
          [&](std::int64_t i, double sum) { return sum + double{passed(i, given[i])}; });
      compare<double>(
          table, n, offset,
          [&](const KernelTables& t, double* sum_dy_z) {
            Guarded<float> dy = floats(n, offset, 9);
            t.layers.add_batch_norm_sums(spare.data(), sum_dy_z, dy.data(), x.data(), n, columns, 1,
                                         n);
          },
          [&](std::int64_t i, double sum) {
            return sum + double{passed(i, given[i])} * double{z(i)};
          });
      compare<float>(
          table, n, offset,
          [&](const KernelTables& t, float* dy) {
            t.layers.batch_norm_gradient(dy, x.data(), n, columns, in.c.data(), in.d.data(),
                                         in.e.data(), 1, n);
          },
          [&](std::int64_t i, float dy) { return in.c[i] * (dy - in.d[i] - z(i) * in.e[i]); });
    }
  });
}

// Three rows in one call, with gaps between them, and row after row: n numbers each.
TEST_CASE("kernel layers: rows in one call give what they give one by one") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    constexpr std::int64_t kRows = 3;
    const std::int64_t ld = n + 5, all = kRows * ld;
    Inputs in(n, offset);
    Guarded<float> x = floats(all, offset, 8), other = floats(all, offset, 9);
    Guarded<float> factors = floats(kRows, offset, 10);
    const NormColumns columns{in.a.data(), in.b.data(), in.c.data(), in.d.data(), true};
    const auto any = [](std::int64_t i) { return awkward_float(i, 9); };
    const auto start = [](std::int64_t i) { return std::abs(awkward_float(i, 11)); };
    Twins<float> largest(n, offset, start), y(all + kRows, offset, any), dy(all, offset, any),
        dx(all, offset, any);
    Twins<double> sums(n, offset), squares(n, offset), products(n, offset), sum_dy(n, offset),
        sum_dy_z(n, offset);
    const auto run = [&](auto side, std::int64_t first, std::int64_t rows) {
      const float* from = x.data() + first * ld;
      const auto at = [&](auto& twins, std::int64_t i) { return side(twins).data() + i; };
      table.products.raise_max_abs(at(largest, 0), from, ld, factors.data() + first, rows, n);
      table.reductions.add_to_sums(at(sums, 0), from, ld, rows, n);
      table.reductions.add_squares_around(at(squares, 0), from, ld, in.means.data(), rows, n);
      table.reductions.add_products(at(products, 0), from, other.data() + first * ld, ld, rows, n);
      table.layers.batch_norm(at(y, first * (ld + 1)), ld + 1, from, ld, columns, rows, n);
      table.layers.add_batch_norm_sums(at(sum_dy, 0), at(sum_dy_z, 0), at(dy, first * ld), from, ld,
                                       columns, rows, n);
      table.layers.batch_norm_gradient(at(dx, first * ld), from, ld, columns, in.c.data(),
                                       in.d.data(), in.e.data(), rows, n);
    };
    for (std::int64_t r = 0; r < kRows; ++r) {
      run(
          [](auto& twins) -> auto& { return twins.expected; }, r, 1);
    }
    run(
        [](auto& twins) -> auto& { return twins.actual; }, 0, kRows);
    REQUIRE(same_bits(y.expected, y.actual, all + kRows, true));
    for (Twins<float>* twins : {&dy, &dx}) {
      REQUIRE(same_bits(twins->expected, twins->actual, all, true));
    }
    REQUIRE(same_bits(largest.expected, largest.actual, n, true));
    for (Twins<double>* twins : {&sums, &squares, &products, &sum_dy, &sum_dy_z}) {
      REQUIRE(same_bits(twins->expected, twins->actual, n, true));
    }
  });
}

TEST_CASE("kernel layers: features are standardised in double and stay finite") {
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto finite = [](std::int64_t i, std::uint32_t stream) {
    const float x = awkward_float(i, stream);
    return std::isfinite(x) ? x : std::copysign(kMost, x);
  };
  for_each_case([&](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    // One more, so that the statistics of all features are there for none, too.
    Guarded<float> means(n + 1, offset), inverse_stds(n + 1, offset);
    for (std::int64_t i = 0; i <= n; ++i) {
      means[i] = finite(i, 21);
      inverse_stds[i] = finite(i, 22);
    }
    for (const bool one_for_all : {false, true}) {
      const auto start = [&](std::int64_t i) { return finite(i, 23); };
      Twins<float> x(n, offset, start);
      for (const bool actual : {false, true}) {
        (actual ? table : reference_kernels())
            .layers.standardize_features((actual ? x.actual : x.expected).data(), means.data(),
                                         inverse_stds.data(), one_for_all, n);
      }
      REQUIRE(same_bits(x.expected, x.actual, n));
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t j = one_for_all ? 0 : i;
        const double exact = (double{start(i)} - double{means[j]}) * double{inverse_stds[j]};
        REQUIRE(x.actual[i] ==
                static_cast<float>(std::clamp(exact, -double{kMost}, double{kMost})));
      }
    }
  });
}

TEST_CASE("kernel layers: bytes become floats") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<std::uint8_t> bytes(n, offset);
    for (std::int64_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(255 - i);
    Twins<float> out(n, offset);
    reference_kernels().layers.bytes_to_float(out.expected.data(), bytes.data(), n);
    table.layers.bytes_to_float(out.actual.data(), bytes.data(), n);
    REQUIRE(same_bits(out.expected, out.actual, n));
    for (std::int64_t i = 0; i < n; ++i) REQUIRE(out.actual[i] == static_cast<float>(bytes[i]));
  });
}

TEST_CASE(
    "kernel layers: sums down columns and along rows equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Inputs x(n, offset);
    compare<double>(
        table, n, offset,
        [&](const KernelTables& t, double* sums) {
          t.reductions.add_to_sums(sums, x.a.data(), n, 1, n);
        },
        [&](std::int64_t i, double sum) { return sum + double{x.a[i]}; });
    compare<double>(
        table, n, offset,
        [&](const KernelTables& t, double* sums) {
          t.reductions.add_squares_around(sums, x.a.data(), n, x.means.data(), 1, n);
        },
        [&](std::int64_t i, double sum) {
          const double centered = double{x.a[i]} - x.means[i];
          return sum + centered * centered;
        });
    compare<double>(
        table, n, offset,
        [&](const KernelTables& t, double* sums) {
          t.reductions.add_products(sums, x.a.data(), x.b.data(), n, 1, n);
        },
        [&](std::int64_t i, double sum) { return sum + double{x.a[i]} * double{x.b[i]}; });

    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x.a[i])) x.a[i] = 1.0f;
    }
    std::array<double, kSumLanes> lanes{};
    for (std::int64_t i = 0; i < n; ++i) {
      lanes[static_cast<std::size_t>(i % kSumLanes)] += double{x.a[i]};
    }
    const double total = sum_of_lanes(lanes);
    REQUIRE(table.reductions.sum(x.a.data(), n) == total);
    REQUIRE(reference_kernels().reductions.sum(x.a.data(), n) == total);
  });
}

TEST_CASE("kernel layers: features that are no numbers stay none") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> x(n, offset);
    for (std::int64_t i = 0; i < n; ++i) x[i] = i % 3 == 0 ? std::nanf("") : 1.0f;
    const float mean = 1.0f, inverse_std = 2.0f;
    table.layers.standardize_features(x.data(), &mean, &inverse_std, true, n);
    for (std::int64_t i = 0; i < n; ++i) REQUIRE((i % 3 == 0 ? std::isnan(x[i]) : x[i] == 0.0f));
  });
}

TEST_CASE("kernel layers: max pooling takes the largest of four, and its gradient the first") {
  for_each_case([](const KernelTables& table, std::int64_t channels, std::int64_t offset) {
    const std::int64_t width = channels % 3 + 1;
    const std::int64_t n = width * channels;
    // Few values, so that there are ties.
    const auto fill = [](std::uint32_t stream) {
      return [stream](std::int64_t i) {
        return i % 3 == 0 ? awkward_float(i, stream) : static_cast<float>((i * 7 + stream) % 4);
      };
    };
    Twins<float> above(2 * n, offset, fill(1)), below(2 * n, offset, fill(2));
    Twins<float> y(n, offset), alone(n, offset), dy(n, offset, fill(3));
    Twins<std::int32_t> winners(n, offset);
    Twins<float> dabove(2 * n, offset, fill(4)), dbelow(2 * n, offset, fill(5));
    Twins<float> before_above(2 * n, offset, fill(4)), before_below(2 * n, offset, fill(5));
    const auto run = [&](const KernelTables& t, Guarded<float> Twins<float>::*side,
                         std::int32_t* won) {
      t.layers.max_pool((alone.*side).data(), nullptr, (above.*side).data(), (below.*side).data(),
                        width, channels);
      t.layers.max_pool((y.*side).data(), won, (above.*side).data(), (below.*side).data(), width,
                        channels);
      t.layers.max_pool_gradient((dabove.*side).data(), (dbelow.*side).data(), won,
                                 (dy.*side).data(), width, channels);
    };
    run(reference_kernels(), &Twins<float>::expected, winners.expected.data());
    run(table, &Twins<float>::actual, winners.actual.data());
    for (Twins<float>* twins : {&above, &below, &dabove, &dbelow}) {
      REQUIRE(same_bits(twins->expected, twins->actual, 2 * n, true));
    }
    REQUIRE(same_bits(y.expected, y.actual, n, true));
    REQUIRE(same_bits(y.actual, alone.actual, n, true));
    REQUIRE(same_bits(winners.expected, winners.actual, n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t left = i / channels * 2 * channels + i % channels;
      const std::int64_t right = left + channels;
      const std::array<float, 4> x{above.actual[left], above.actual[right], below.actual[left],
                                   below.actual[right]};
      const bool nan = std::any_of(x.begin(), x.end(), [](float v) { return std::isnan(v); });
      REQUIRE(std::isnan(y.actual[i]) == nan);
      if (!nan) REQUIRE(y.actual[i] == *std::max_element(x.begin(), x.end()));
      const auto taker = std::find(x.begin(), x.end(), y.actual[i]) - x.begin();
      const std::array<float, 4> changed{dabove.actual[left], dabove.actual[right],
                                         dbelow.actual[left], dbelow.actual[right]};
      const std::array<float, 4> before{before_above.actual[left], before_above.actual[right],
                                        before_below.actual[left], before_below.actual[right]};
      for (std::size_t k = 0; k < 4; ++k) {
        const float share = static_cast<std::ptrdiff_t>(k) == taker ? dy.actual[i] : 0.0f;
        const float expected = before[k] + share;
        REQUIRE((std::isnan(expected) ? std::isnan(changed[k]) : changed[k] == expected));
      }
    }
  });
}

struct Row {
  Row(std::int64_t n, std::int64_t offset)
      : x(floats(n, offset, 1)), gain(floats(n, offset, 2)), bias(floats(n, offset, 3)) {}

  RowNorm norm() { return {0.75f, 1.3f, gain.data()}; }
  float z(std::int64_t i) { return (x[i] - 0.75f) * 1.3f; }

  Guarded<float> x, gain, bias;
};

// Sums of term(i) in interleaved lanes.
template <typename Term>
double sum_of(std::int64_t n, const Term& term) {
  std::array<double, kSumLanes> lanes{};
  for (std::int64_t i = 0; i < n; ++i) lanes[static_cast<std::size_t>(i % kSumLanes)] += term(i);
  return sum_of_lanes(lanes);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

TEST_CASE("kernel row norm: rows and gradients equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Row row(n, offset);
    Guarded<float> dy = floats(n, offset, 4);
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* y) {
          t.layers.row_norm(y, row.x.data(), row.norm(), row.bias.data(), n);
        },
        [&](std::int64_t i, float) { return row.z(i) * row.gain[i] + row.bias[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* y) {
          t.layers.row_norm(y, row.x.data(), row.norm(), nullptr, n);
        },
        [&](std::int64_t i, float) { return row.z(i) * row.gain[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* dx) {
          t.layers.row_norm_gradient(dx, row.x.data(), row.norm(), 0.3f, -0.2f, n);
        },
        [&](std::int64_t i, float before) {
          return 1.3f * (row.gain[i] * before - 0.3f - row.z(i) * -0.2f);
        });
    Guarded<float> other = floats(n, offset, 5);
    for (float* dbias : {static_cast<float*>(nullptr), other.data()}) {
      compare<float>(
          table, n, offset,
          [&](const KernelTables& t, float* dgain) {
            t.layers.add_row_norm_gradients(dgain, dbias, dy.data(), row.x.data(), row.norm(), n);
          },
          [&](std::int64_t i, float sum) { return sum + dy[i] * row.z(i); });
    }
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* dbias) {
          t.layers.add_row_norm_gradients(other.data(), dbias, dy.data(), row.x.data(), row.norm(),
                                          n);
        },
        [&](std::int64_t i, float sum) { return sum + dy[i]; });
  });
}

TEST_CASE("kernel row norm: sums of rows equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Row row(n, offset);
    Guarded<float> dy = floats(n, offset, 4);
    for (const bool finite : {false, true}) {
      for (std::int64_t i = 0; finite && i < n; ++i) {
        for (Guarded<float>* numbers : {&row.x, &row.gain, &dy}) {
          if (!(std::abs((*numbers)[i]) < 1e6f)) (*numbers)[i] = 1.0f;
        }
      }
      const double squares = sum_of(n, [&](std::int64_t i) {
        const double centered = double{row.x[i]} - 0.7;
        return centered * centered;
      });
      const auto dz = [&](std::int64_t i) { return double{row.gain[i] * dy[i]}; };
      const double sum_dz = sum_of(n, dz);
      const double sum_dz_z = sum_of(n, [&](std::int64_t i) { return dz(i) * double{row.z(i)}; });
      for (const KernelTables* t : {&reference_kernels(), &table}) {
        REQUIRE(same(t->reductions.sum_of_squares_around(row.x.data(), 0.7, n), squares));
        const RowNormSums sums = t->layers.row_norm_sums(dy.data(), row.x.data(), row.norm(), n);
        REQUIRE(same(sums.dz, sum_dz));
        REQUIRE(same(sums.dz_z, sum_dz_z));
      }
    }
  });
}

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

}  // namespace tritgrad::test::test_kernel_layers
