// Dense products against a plain product in double precision: what the tests of gemm and of
// dense_product share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/kernel_inputs.h"

namespace tritgrad {

// Returns a number within +-1, as if by chance: the finaliser of SplitMix64 (Steele, Lea and Flood
// 2014). To draw normal numbers took longer than to multiply them.
inline float scattered(std::uint64_t index, std::uint32_t stream) {
  std::uint64_t x = (index + (std::uint64_t{stream} << 32)) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<float>(static_cast<std::int32_t>(x >> 32)) * 0x1p-31f;
}

// A matrix whose numbers do not depend on the padding, which is filled with others.
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t padding, std::uint32_t stream)
      : stride(cols + padding), values(static_cast<std::size_t>(rows * stride)) {
    auto inside = std::uint64_t{0}, outside = static_cast<std::uint64_t>(rows * cols);
    std::int64_t column = 0;
    for (float& value : values) {
      value = scattered(column < cols ? inside++ : outside++, stream);
      column = column + 1 == stride ? 0 : column + 1;
    }
  }
  float& at(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(row * stride + col)];
  }
  std::int64_t stride;
  std::vector<float> values;
};

struct Product {
  Product(const GemmShape& s, std::int64_t padding)
      : shape(s),
        a(s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, padding, 1),
        b(s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, padding, 2),
        c(s.m, s.n, padding, 3) {}

  // multiply has the signature of ProductKernels::gemm.
  template <typename Multiply>
  void run(const Multiply& multiply) {
    multiply(shape, a.values.data(), a.stride, b.values.data(), b.stride, c.values.data(),
             c.stride);
  }
  GemmShape shape;
  Matrix a, b, c;
};

// x, or x transposed, without gaps.
inline std::vector<double> plain_rows(const Matrix& x, bool transposed, std::int64_t rows,
                                      std::int64_t cols) {
  const std::int64_t down = transposed ? 1 : x.stride, right = transposed ? x.stride : 1;
  std::vector<double> out(static_cast<std::size_t>(rows * cols));
  double* to = out.data();
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* from = x.values.data() + i * down;
    for (std::int64_t j = 0; j < cols; ++j) *to++ = from[j * right];
  }
  return out;
}

// Adds a row of n products to sums, and their magnitudes to magnitudes.
inline void add_products(double* sums, double* magnitudes, double a, const double* b,
                         std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    const double product = a * b[j];
    sums[j] += product;
    magnitudes[j] += std::fabs(product);
  }
}

// A product in double, made once for all who have to come near it.
//
// The bound holds for any order of the sums, fused or not: an element of k products and perhaps an
// old value is off by at most gamma_(k + 1) times the sum of the magnitudes, gamma_n = n u / (1 - n
// u), u = 2^-24. (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
// section 3.1.)
class ExpectedProduct {
 public:
  explicit ExpectedProduct(const GemmShape& s)
      : shape_(s), sums_(static_cast<std::size_t>(s.m * s.n)), bounds_(sums_) {
    const Product plain(s, 0);
    const std::vector<double> a = plain_rows(plain.a, s.transpose_a, s.m, s.k);
    const std::vector<double> b = plain_rows(plain.b, s.transpose_b, s.k, s.n);
    if (s.accumulate) {
      const std::vector<float>& old = plain.c.values;
      std::copy(old.begin(), old.end(), sums_.begin());
      std::transform(old.begin(), old.end(), bounds_.begin(), [](float x) { return std::fabs(x); });
    }
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t l = 0; l < s.k; ++l) {
        add_products(sums_.data() + i * s.n, bounds_.data() + i * s.n,
                     a[static_cast<std::size_t>(i * s.k + l)], b.data() + l * s.n, s.n);
      }
    }
    const double nu = static_cast<double>(s.k + 1) * 0x1p-24;
    for (double& bound : bounds_) bound *= nu / (1.0 - nu);
  }

  // multiply has the signature of ProductKernels::gemm.
  template <typename Multiply>
  void check(const char* name, const Multiply& multiply, std::int64_t padding) const {
    const GemmShape& s = shape_;
    Product before(s, padding), after = before;
    after.run(multiply);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < s.m; ++i) {
      const float* old = before.c.values.data() + i * before.c.stride;
      const float* found = after.c.values.data() + i * after.c.stride;
      for (std::int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<std::size_t>(i * s.n + j);
        wrong += !(std::fabs(found[j] - sums_[at]) <= bounds_[at]);
      }
      for (std::int64_t j = s.n; j < after.c.stride; ++j) wrong += found[j] != old[j];
    }
    INFO(name, " ", s.m, "x", s.n, "x", s.k, " transposes ", s.transpose_a, s.transpose_b,
         " accumulate ", s.accumulate, " padding ", padding);
    REQUIRE(wrong == 0);
  }

 private:
  GemmShape shape_;
  std::vector<double> sums_, bounds_;  // row-major; bounds of what a product is off
};

template <typename Body>
void for_each_mode(std::int64_t m, std::int64_t n, std::int64_t k, const Body& body) {
  for (int mode = 0; mode < 8; ++mode) {
    body(GemmShape{m, n, k, (mode & 1) != 0, (mode & 2) != 0, (mode & 4) != 0});
  }
}

inline constexpr std::int64_t kShapes[][3] = {
    {1, 1, 1},    {1, 1, 37},  {1, 19, 23},  {19, 1, 23},   {2, 3, 5},       {7, 7, 7},
    {8, 16, 24},  {17, 33, 9}, {31, 10, 65}, {64, 64, 64},  {65, 127, 33},   {33, 5, 300},
    {48, 49, 50}, {100, 3, 1}, {3, 100, 2},  {61, 67, 600}, {256, 255, 129}, {130, 300, 7}};

}  // namespace tritgrad
