// Rule arithmetic: every vector kernel against the scalar reference, bit for bit; what the contract
// says of finding and counting; and the reference against the formulas of engine/kernels/updates.h
// in double, so that what other kernels are compared with is itself right. What the rules mean is
// tested in tests/optim/test_optim.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_rules {
namespace {

// Calls run(table, out, state) for the reference and for the table under test, with equal awkward
// contents in both arrays, and compares what became of them. NaN may have another payload.
template <typename Run>
void compare(const KernelTables& table, std::int64_t n, std::int64_t offset, const Run& run) {
  const auto content = [](std::uint32_t stream) {
    return [stream](std::int64_t i) { return awkward_float(i, stream); };
  };
  Twins<float> out(n, offset, content(31));
  Twins<float> state(n, offset, content(32));
  run(reference_kernels(), out.expected.data(), state.expected.data());
  run(table, out.actual.data(), state.actual.data());
  REQUIRE_MESSAGE(same_bits(out.expected, out.actual, n, true), table.name, " n=", n);
  REQUIRE_MESSAGE(same_bits(state.expected, state.actual, n, true), table.name, " n=", n);
}

}  // namespace

TEST_CASE("kernel rules: directions, gains and carried errors equal the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<float> grad = floats(n, offset, 33);
    Guarded<float> other = floats(n, offset, 34);
    const float* g = grad.data();
    const float* x = other.data();
    const auto check = [&](const auto& run) { compare(table, n, offset, run); };
    check([&](const KernelTables& t, float* out, float*) {
      t.reductions.add_scaled(out, g, 0.3f, n);
    });
    check([&](const KernelTables& t, float* out, float*) { t.updates.sign(out, g, n); });
    for (bool nesterov : {false, true}) {
      check([&](const KernelTables& t, float* out, float* m) {
        t.updates.sgd(out, m, g, 0.9f, 0.1f, nesterov, n);
      });
    }
    check([&](const KernelTables& t, float* out, float* m) {
      t.updates.lion(out, m, g, {0.9f, 0.99f, 0.1f, 0.01f}, n);
    });
    for (float inverse_bias : {0.0f, 1.5f}) {
      check([&](const KernelTables& t, float* out, float* v) {
        t.updates.normalized(out, v, g, 0.999f, 0.001f, inverse_bias, n);
      });
    }
    check([&](const KernelTables& t, float* out, float*) {
      t.updates.adam_gain(out, g, 1.1f, 2.0f, 1e-8f, n);
    });
    check([&](const KernelTables& t, float* m, float* stored) {
      t.updates.carry_error(m, g, stored, x, -3.0f, 1.25f, n);
    });
    check([&](const KernelTables& t, float* m, float* stored) {
      t.updates.carry_error(m, g, stored, nullptr, -3.0f, 1.25f, n);
    });
    check([&](const KernelTables& t, float* out, float*) { t.updates.limit(out, 0.5f, n); });
    check([&](const KernelTables& t, float* out, float* squares) {
      for (std::int64_t i = 0; i < n; ++i) squares[i] = g[i] * g[i];
      t.updates.divide_by_roots(out, squares, 0.3f, 1e-8f, n);
    });
  });
}

TEST_CASE("kernel rules: normalized of equal mean squares is that of each alone") {
  for (const float v : {0.0f, -0.0f, 1e-12f, 0.3f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN(), -1.0f}) {
    CAPTURE(v);
    for_each_case([&](const KernelTables& table, std::int64_t n, std::int64_t offset) {
      Guarded<float> grad = floats(n, offset, 35);
      Twins<float> direction(n, offset);
      Twins<float> squares(n, offset, [&](std::int64_t) { return v; });
      // What differs takes the way of moments that are not one number.
      Guarded<float> others(n + 1, offset), its_direction(n + 1, offset), its_grad(n + 1, offset);
      for (std::int64_t i = 0; i < n; ++i) others[i] = v, its_grad[i] = grad[i];
      others[n] = 2.0f, its_grad[n] = 1.0f;
      table.updates.normalized(direction.actual.data(), squares.actual.data(), grad.data(), 0.999f,
                               0.001f, 1.5f, n);
      table.updates.normalized(its_direction.data(), others.data(), its_grad.data(), 0.999f, 0.001f,
                               1.5f, n + 1);
      for (std::int64_t i = 0; i < n; ++i) {
        direction.expected[i] = its_direction[i];
        squares.expected[i] = others[i];
      }
      REQUIRE(same_bits(direction.expected, direction.actual, n, true));
      REQUIRE(same_bits(squares.expected, squares.actual, n, true));
    });
  }
}

TEST_CASE("kernel rules: MicroAdam's largest magnitudes equal the reference") {
  for (const KernelTables* table : vector_kernels()) {
    for (std::int64_t n : {1, 2, 63, 64, 65, 127, 255, 256, 257, 300, 511, 1000, 4095, 4096}) {
      for (std::int64_t k : {1, 2, 41, 64, 65, 130, 410, 513, 1025, 4096}) {
        if (k > n) continue;
        // Many equal ones; those of one group alone; normal ones; and all of them equal.
        for (int kind = 0; kind < 4; ++kind) {
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(kind);
          Guarded<float> x(n, kind);
          for (std::int64_t i = 0; i < n; ++i) {
            x[i] = kind == 0   ? static_cast<float>(i * 7919 % 101 - 50) / 64.0f
                   : kind == 1 ? (i % 128 == 5 ? static_cast<float>(i) : -0.0f)
                   : kind == 2 ? random_normal(kKey, static_cast<std::uint64_t>(i))
                               : -0.5f;
          }
          Twins<std::uint16_t> found(k, 1);
          reference_kernels().updates.select_largest(found.expected.data(), x.data(), k, n);
          table->updates.select_largest(found.actual.data(), x.data(), k, n);
          REQUIRE(same_bits(found.expected, found.actual, k));
        }
      }
    }
  }
}

TEST_CASE("kernel rules: the largest magnitudes of the reference are those of a sorted list") {
  constexpr std::int64_t kNumbers = 300;
  std::vector<float> x;
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    x.push_back(static_cast<float>(i * 7919 % 101 - 50) / 64.0f);
  }
  std::vector<std::uint16_t> order(x.size());
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return std::abs(x[a]) > std::abs(x[b]);
  });
  for (const std::int64_t k : {1, 5, 41, 300}) {
    std::vector<std::uint16_t> index(static_cast<std::size_t>(k));
    reference_kernels().updates.select_largest(index.data(), x.data(), k, kNumbers);
    std::vector<std::uint16_t> expected(order.begin(), order.begin() + k);
    std::sort(expected.begin(), expected.end());
    CHECK(index == expected);
  }
}

TEST_CASE("kernel rules: MicroAdam's feedback equals the reference") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Guarded<std::uint16_t> noise = noise_bits(n, offset);
    Guarded<float> x(n, offset), grad = floats(n, offset, 36);
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] =
          std::ldexp(static_cast<float>(i * 7919 % 101 - 50), static_cast<int>(i / 64 * 40) - 99);
    }
    if (n > 2) x[n - 1] = -0.0f;
    for (const int bits : {2, 3, 4, 8}) {
      for (const std::int64_t bucket : {64, 32, 7}) {
        const std::int64_t bytes = (n * bits + 7) / 8, bounds = 2 * ((n + bucket - 1) / bucket);
        for (const std::uint16_t* its : {noise.data(), static_cast<std::uint16_t*>(nullptr)}) {
          Twins<std::uint8_t> codes(bytes, offset);
          Twins<std::uint16_t> low_high(bounds, offset);
          const Feedback expected{codes.expected.data(), low_high.expected.data(), bits, bucket,
                                  1e-8f};
          const Feedback actual{codes.actual.data(), low_high.actual.data(), bits, bucket, 1e-8f};
          reference_kernels().updates.store_feedback(expected, x.data(), its, n);
          table.updates.store_feedback(actual, x.data(), its, n);
          REQUIRE(same_bits(codes.expected, codes.actual, bytes));
          REQUIRE(same_bits(low_high.expected, low_high.actual, bounds));
          Twins<float> out(n, offset);
          reference_kernels().updates.add_feedback(out.expected.data(), grad.data(), expected, n);
          table.updates.add_feedback(out.actual.data(), grad.data(), actual, n);
          REQUIRE(same_bits(out.expected, out.actual, n, true));
        }
      }
    }
  });
}

TEST_CASE("kernel rules: squares of sums are added exactly, up to the largest of both signs") {
  __extension__ using Wide = __int128;
  for (const KernelTables* table : supported_kernels()) {
    for (const std::int64_t n : awkward_lengths()) {
      for (const std::int32_t correction : {0, 3, -70000, 1 << 30}) {
        const std::int32_t largest = correction < 0 ? 0x7FFFFFFF : -0x7FFFFFFF;
        Guarded<std::int32_t> sums(n, 1);
        Wide expected = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int32_t difference = i == 0   ? largest
                                          : i == 1 ? 0x3FFFFFFF
                                                   : static_cast<std::int32_t>(i * 7919);
          sums[i] = difference + correction;
          expected += Wide{difference} * difference;
        }
        CHECK(Wide{table->reductions.sum_of_squared_sums(sums.data(), correction, n)} == expected);
      }
    }
  }
}

TEST_CASE("kernel rules: the largest magnitude and what is not finite are found anywhere") {
  for (const KernelTables* table : supported_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      Guarded<float> x(n, 1);
      for (std::int64_t i = 0; i < n; ++i) x[i] = 0.25f * static_cast<float>(i % 3 - 1);
      CHECK(table->reductions.all_finite(x.data(), n));
      CHECK(table->reductions.max_abs(x.data(), n) == (n == 0 ? 0.0f : 0.25f));
      for (std::int64_t i : {std::int64_t{0}, n / 2, n - 1}) {
        if (n == 0) continue;
        const float before = x[i];
        x[i] = -3.4e38f;
        CHECK(table->reductions.all_finite(x.data(), n));
        CHECK(table->reductions.max_abs(x.data(), n) == 3.4e38f);
        for (float bad : {INFINITY, -INFINITY, NAN}) {
          x[i] = bad;
          CHECK_FALSE(table->reductions.all_finite(x.data(), n));
        }
        x[i] = before;
      }
    }
  }
}

TEST_CASE("kernel rules: bf16 numbers that are not finite are found anywhere") {
  for (const KernelTables* table : supported_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      Guarded<std::uint16_t> x(n, 1);
      constexpr std::uint16_t kFinite[] = {0x7F7F, 0x0001, 0xFF7F, 0x8000};
      for (std::int64_t i = 0; i < n; ++i) x[i] = kFinite[i % 4];
      CHECK(table->reductions.all_finite_bf16(x.data(), n));
      for (std::int64_t i : {std::int64_t{0}, n / 2, n - 1}) {
        if (n == 0) continue;
        const std::uint16_t before = x[i];
        for (int bad : {0x7F80, 0xFF80, 0x7F81, 0xFFC0}) {
          x[i] = static_cast<std::uint16_t>(bad);
          CHECK_FALSE(table->reductions.all_finite_bf16(x.data(), n));
        }
        x[i] = before;
      }
    }
  }
}

TEST_CASE("kernel rules: the sign of numbers without one is zero") {
  const float in[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-45f, -1e-45f, 3e38f};
  const float expected[] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, -1.0f, 1.0f};
  for (const KernelTables* table : supported_kernels()) {
    float out[8];
    table->updates.sign(out, in, 8);
    for (int i = 0; i < 8; ++i) CHECK(out[i] == expected[i]);
  }
}

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// What is finite is such that no product of those below leaves the range of normal floats.
constexpr float kValues[] = {0.0f,   -0.0f,  1.0f,  -1.0f, 0.75f, -2.5f, 1e-9f,
                             -3e-7f, 1.5e8f, -3e9f, kInf,  -kInf, kNan};
constexpr float kRoots[] = {0.0f, -0.0f, 1e-12f, 0.3f, 7e8f, kInf, kNan, -1.0f};

const KernelTables& reference() { return reference_kernels(); }

// Each rounding of a float changes it by 2^-24 of itself at most; `size` is the sum of the
// magnitudes of what was added up (or the result where nothing was). The rest, 2^-20 of that,
// covers products of such errors and the roundings of double.
void check_near(float actual, double expected, double size, int roundings) {
  CAPTURE(actual);
  CAPTURE(expected);
  if (std::isnan(expected)) {
    CHECK(std::isnan(actual));
  } else if (std::isinf(expected)) {
    CHECK(double{actual} == expected);
  } else {
    CHECK(std::abs(double{actual} - expected) <= roundings * 0x1p-24 * (1.0 + 0x1p-20) * size);
  }
}

// 0 where there is no sign: zeros, infinities and NaN.
double sign_of(double x) {
  if (!std::isfinite(x)) return 0.0;
  return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
}

// Calls body(a, b) for all pairs.
template <std::size_t kA, std::size_t kB, typename Body>
void for_pairs(const float (&first)[kA], const float (&second)[kB], const Body& body) {
  for (const float a : first) {
    for (const float b : second) {
      CAPTURE(a);
      CAPTURE(b);
      body(a, b);
    }
  }
}

}  // namespace

TEST_CASE("kernel contracts: sgd, with nesterov and without") {
  constexpr float kMomentum = 0.9f, kFresh = 0.3f;
  for_pairs(kValues, kValues, [&](float before, float grad) {
    const double g = grad, old = double{kMomentum} * before, added = kFresh * g;
    const double m = old + added, size = std::abs(old) + std::abs(added);
    for (const bool nesterov : {false, true}) {
      float moment = before, direction = 99.0f;
      reference().updates.sgd(&direction, &moment, &grad, kMomentum, kFresh, nesterov, 1);
      check_near(moment, m, size, 2);  // a product and the sum
      if (!nesterov) check_near(direction, m, size, 2);
      if (nesterov) check_near(direction, g + kMomentum * m, std::abs(g) + kMomentum * size, 4);
    }
  });
}

TEST_CASE("kernel contracts: sign and lion") {
  constexpr LionConstants kLion = {0.9f, 0.99f, 0.1f, 0.01f};
  for (const float grad : kValues) {
    float direction = 99.0f;
    reference().updates.sign(&direction, &grad, 1);
    CHECK(double{direction} == sign_of(grad));
  }
  for_pairs(kValues, kValues, [&](float before, float grad) {
    const double m = before, g = grad;
    float moment = before, direction = 99.0f;
    reference().updates.lion(&direction, &moment, &grad, kLion, 1);
    // Nothing here cancels to less than the roundings, which could turn the sign.
    CHECK(double{direction} == sign_of(kLion.beta1 * m + kLion.one_minus_beta1 * g));
    const double old = kLion.beta2 * m, added = kLion.one_minus_beta2 * g;
    check_near(moment, old + added, std::abs(old) + std::abs(added), 2);
  });
}

TEST_CASE("kernel contracts: normalized is 0 where the root is not positive") {
  constexpr float kBeta = 0.999f, kRest = 0.001f, kInverseBias = 1.5f;
  for_pairs(kRoots, kValues, [&](float before, float grad) {
    float v = before, direction = 99.0f;
    reference().updates.normalized(&direction, &v, &grad, kBeta, kRest, kInverseBias, 1);
    const double root = std::sqrt(double{before} * kInverseBias), g = grad;
    // The product under the root counts half; root, its inverse, the product.
    if (root > 0.0) check_near(direction, g * (1.0 / root), std::abs(g / root), 4);
    if (!(root > 0.0)) CHECK(direction == 0.0f);
    const double old = double{kBeta} * before, added = kRest * g * g;
    check_near(v, old + added, std::abs(old) + std::abs(added), 3);
  });
}

TEST_CASE("kernel contracts: divide_by_roots leaves 0 at 0, whatever it is divided by") {
  constexpr float kRate = 0.3f;
  for (const float eps : {0.0f, 1e-8f}) {
    for_pairs(kRoots, kValues, [&](float squares, float before) {
      float direction = before;
      reference().updates.divide_by_roots(&direction, &squares, kRate, eps, 1);
      if (before == 0.0f) {
        CHECK(direction == 0.0f);
        return;
      }
      const double expected = double{kRate} * before / (std::sqrt(double{squares}) + eps);
      check_near(direction, expected, std::abs(expected), 4);  // product, root, sum, quotient
    });
  }
}

TEST_CASE("kernel contracts: adam_gain") {
  constexpr float kInverseBias1 = 1.1f, kInverseBias2 = 2.0f;
  for (const float eps : {0.0f, 1e-8f}) {
    for (const float v : kRoots) {
      CAPTURE(v);
      float gain = 99.0f;
      reference().updates.adam_gain(&gain, &v, kInverseBias1, kInverseBias2, eps, 1);
      const double expected = kInverseBias1 / (std::sqrt(double{v} * kInverseBias2) + eps);
      check_near(gain, expected, std::abs(expected), 4);  // half a product, root, sum, quotient
    }
  }
}

TEST_CASE("kernel contracts: carry_error") {
  constexpr float kAlpha = -3.0f, kRescale = 1.25f;
  for (const float gain : {0.5f, 3e-5f, 1e7f}) {
    for (const float before : kValues) {
      CAPTURE(gain);
      CAPTURE(before);
      for_pairs(kValues, kValues, [&](float wanted, float stored) {
        float momentum = before;
        reference().updates.carry_error(&momentum, &wanted, &stored, &gain, kAlpha, kRescale, 1);
        const double error = double{wanted} - stored, carried = kAlpha * error / gain;
        const double size = std::abs(double{before}) + std::abs(carried);
        // The difference, product, quotient, sum, and the last product.
        check_near(momentum, kRescale * (before + carried), kRescale * size, 5);
      });
    }
  }
}

TEST_CASE("kernel contracts: limit makes NaN 0 and leaves what lies within") {
  for (const float bound : {0.5f, 2.5f, 1e30f}) {
    CAPTURE(bound);
    for (const float before : kValues) {
      CAPTURE(before);
      float x = before;
      reference().updates.limit(&x, bound, 1);
      const float clipped = before > bound ? bound : before < -bound ? -bound : before;
      CHECK(x == (std::isnan(before) ? 0.0f : clipped));
    }
  }
}

}  // namespace tritgrad::test::test_kernel_rules
