// Dense products against a plain product in double precision.
#include <doctest/doctest.h>

#include "tests/kernel_inputs.h"

namespace tritgrad {
namespace {

struct Matrix {
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t padding, std::uint32_t stream)
      : stride(cols + padding), values(static_cast<std::size_t>(rows * stride)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = random_normal({.seed = 3, .stream = stream, .step = 0}, i);
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

  void run(const KernelTable& table) {
    table.gemm(shape, a.values.data(), a.stride, b.values.data(), b.stride, c.values.data(),
               c.stride);
  }
  GemmShape shape;
  Matrix a, b, c;
};

// Whatever the order of the sums, fused or not: an element of k products and perhaps an old value
// is off by at most gamma_(k + 1) times the sum of the magnitudes, gamma_n = n u / (1 - n u), u =
// 2^-24. (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.)
void check_product(const KernelTable& table, const GemmShape& s, std::int64_t padding) {
  Product before(s, padding), after = before;
  after.run(table);
  const double nu = static_cast<double>(s.k + 1) * 0x1p-24;
  const double gamma = nu / (1.0 - nu);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < after.c.stride; ++j) {
      if (j >= s.n) {
        wrong += after.c.at(i, j) != before.c.at(i, j);
        continue;
      }
      double sum = s.accumulate ? before.c.at(i, j) : 0.0;
      double magnitude = std::fabs(sum);
      for (std::int64_t l = 0; l < s.k; ++l) {
        const double product = double{s.transpose_a ? before.a.at(l, i) : before.a.at(i, l)} *
                               (s.transpose_b ? before.b.at(j, l) : before.b.at(l, j));
        sum += product;
        magnitude += std::fabs(product);
      }
      wrong += !(std::fabs(after.c.at(i, j) - sum) <= gamma * magnitude);
    }
  }
  INFO(table.name, " ", s.m, "x", s.n, "x", s.k, " transposes ", s.transpose_a, s.transpose_b,
       " accumulate ", s.accumulate, " padding ", padding);
  REQUIRE(wrong == 0);
}

template <typename Body>
void for_each_mode(std::int64_t m, std::int64_t n, std::int64_t k, const Body& body) {
  for (int mode = 0; mode < 8; ++mode) {
    body(GemmShape{m, n, k, (mode & 1) != 0, (mode & 2) != 0, (mode & 4) != 0});
  }
}

constexpr std::int64_t kShapes[][3] = {
    {1, 1, 1},    {1, 1, 37},  {1, 19, 23},  {19, 1, 23},   {2, 3, 5},       {7, 7, 7},
    {8, 16, 24},  {17, 33, 9}, {31, 10, 65}, {64, 64, 64},  {65, 127, 33},   {33, 5, 300},
    {48, 49, 50}, {100, 3, 1}, {3, 100, 2},  {61, 67, 600}, {256, 255, 129}, {130, 300, 7}};

TEST_CASE("gemm: every transpose, odd shapes and strides are within the rounding bound") {
  for (const KernelTable* table : supported_kernels()) {
    for (const auto& [m, n, k] : kShapes) {
      for_each_mode(m, n, k, [&](const GemmShape& shape) {
        check_product(*table, shape, 0);
        check_product(*table, shape, 3);
      });
    }
  }
}

TEST_CASE("gemm: sums longer than one cut of the inner dimension are complete") {
  for (const KernelTable* table : supported_kernels()) {
    for_each_mode(1, 3, 16384 + 5,
                  [&](const GemmShape& shape) { check_product(*table, shape, 1); });
    for_each_mode(9, 20, 2 * 16384 + 1,
                  [&](const GemmShape& shape) { check_product(*table, shape, 1); });
  }
}

TEST_CASE("gemm: empty dimensions give zeros or leave the output alone") {
  for (const KernelTable* table : supported_kernels()) {
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{5, 6, 0}, {0, 6, 4}, {5, 0, 4}, {0, 0, 0}}) {
      for_each_mode(m, n, k, [&](const GemmShape& shape) { check_product(*table, shape, 2); });
    }
  }
}

TEST_CASE("gemm: an infinity or a NaN in an operand is not lost") {
  for (const KernelTable* table : supported_kernels()) {
    Product product({20, 20, 20}, 0);
    product.a.at(3, 4) = std::numeric_limits<float>::infinity();
    product.b.at(5, 6) = std::numeric_limits<float>::quiet_NaN();
    product.run(*table);
    CHECK(std::isinf(product.c.at(3, 2)));
    CHECK(std::isnan(product.c.at(9, 6)));
    CHECK(std::isfinite(product.c.at(9, 2)));
  }
}

TEST_CASE("gemm: the bits depend on neither the call nor the place in memory") {
  for (const KernelTable* table : supported_kernels()) {
    for (const auto& [m, n, k] : kShapes) {
      for_each_mode(m, n, k, [&](const GemmShape& shape) {
        Product first(shape, 0);
        Product second = first;
        first.run(*table);
        for (std::ptrdiff_t shift : {0, 1, 5}) {
          const auto moved = [shift](const std::vector<float>& values) {
            Guarded<float> copy(std::ssize(values), shift);
            std::copy(values.begin(), values.end(), copy.data());
            return copy;
          };
          Guarded<float> a = moved(second.a.values), b = moved(second.b.values);
          Guarded<float> c = moved(second.c.values);
          table->gemm(shape, a.data(), second.a.stride, b.data(), second.b.stride, c.data(),
                      second.c.stride);
          REQUIRE(std::memcmp(c.data(), first.c.values.data(),
                              first.c.values.size() * sizeof(float)) == 0);
        }
      });
    }
  }
}

}  // namespace
}  // namespace tritgrad
