// Dense products of every kernel table against a plain product in double precision.
#include <doctest/doctest.h>

#include <initializer_list>

#include "tests/support/product_inputs.h"

namespace tritgrad::test::test_gemm {
namespace {

// The product of every table in every mode, with each padding.
void check_products(std::int64_t m, std::int64_t n, std::int64_t k,
                    std::initializer_list<std::int64_t> paddings) {
  for_each_mode(m, n, k, [&](const GemmShape& shape) {
    const ExpectedProduct expected(shape);
    for (const KernelTables* table : supported_kernels()) {
      for (const std::int64_t padding : paddings) {
        expected.check(table->name, table->products.gemm, padding);
      }
    }
  });
}

TEST_CASE("gemm: every transpose, odd shapes and strides are within the rounding bound") {
  for (const auto& [m, n, k] : kShapes) check_products(m, n, k, {0, 3});
}

TEST_CASE("gemm: sums longer than one cut of the inner dimension are complete") {
  check_products(1, 3, 16384 + 5, {1});
  check_products(9, 20, 2 * 16384 + 1, {1});
}

TEST_CASE("gemm: empty dimensions give zeros or leave the output alone") {
  check_products(5, 6, 0, {2});
  check_products(0, 6, 4, {2});
  check_products(5, 0, 4, {2});
  check_products(0, 0, 0, {2});
}

TEST_CASE("gemm: an infinity or a NaN in an operand is not lost") {
  for (const KernelTables* table : supported_kernels()) {
    Product product({20, 20, 20}, 0);
    product.a.at(3, 4) = std::numeric_limits<float>::infinity();
    product.b.at(5, 6) = std::numeric_limits<float>::quiet_NaN();
    product.run(table->products.gemm);
    CHECK(std::isinf(product.c.at(3, 2)));
    CHECK(std::isnan(product.c.at(9, 6)));
    CHECK(std::isfinite(product.c.at(9, 2)));
  }
}

TEST_CASE("gemm: the bits depend on neither the call nor the place in memory") {
  for (const KernelTables* table : supported_kernels()) {
    for (const auto& [m, n, k] : kShapes) {
      for_each_mode(m, n, k, [&](const GemmShape& shape) {
        Product first(shape, 0);
        Product second = first;
        first.run(table->products.gemm);
        for (std::ptrdiff_t shift : {0, 1, 5}) {
          const auto moved = [shift](const std::vector<float>& values) {
            Guarded<float> copy(std::ssize(values), shift);
            std::copy(values.begin(), values.end(), copy.data());
            return copy;
          };
          Guarded<float> a = moved(second.a.values), b = moved(second.b.values);
          Guarded<float> c = moved(second.c.values);
          table->products.gemm(shape, a.data(), second.a.stride, b.data(), second.b.stride,
                               c.data(), second.c.stride);
          REQUIRE(std::memcmp(c.data(), first.c.values.data(),
                              first.c.values.size() * sizeof(float)) == 0);
        }
      });
    }
  }
}

}  // namespace
}  // namespace tritgrad::test::test_gemm
