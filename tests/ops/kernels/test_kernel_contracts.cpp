// The reference kernels of update rules against the formulas of engine/kernels/updates.h, in
// double: what other kernels are compared with is itself right
// (tests/ops/kernels/test_kernel_rules.cpp has the rest).
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_contracts {
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

}  // namespace tritgrad::test::test_kernel_contracts
