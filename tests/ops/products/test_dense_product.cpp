// Dense products by oneDNN or Eigen: the rounding bound, and that neither threads nor the place in
// memory change a bit.
#include <doctest/doctest.h>

#include <array>
#include <string_view>

#include "engine/memory/parallel.h"
#include "ops/products/dense_product.h"
#include "tests/support/product_inputs.h"

namespace tritgrad::test::test_dense_product {
namespace {

// Shapes that oneDNN, left alone, cuts for two threads, along the sum too; a long sum; and shapes
// of more than one tile.
constexpr std::int64_t kLargeShapes[][3] = {{32, 128, 1024}, {256, 10, 1000}, {150, 1, 700},
                                            {1, 150, 700},   {4, 5, 17000},   {1030, 70, 33},
                                            {70, 1030, 33},  {1025, 1026, 3}};

// Calls body(name) with the kernels of the start, and once more without oneDNN.
template <typename Body>
void for_both_libraries(const Body& body) {
  body(kernels().name);
  allow_onednn(false);
  body("gemm");
  allow_onednn(true);
}

// Does the same, and with every other table in place.
template <typename Body>
void for_each_table(const Body& body) {
  for_both_libraries(body);
  const KernelTables& before = kernels();
  for (const KernelTables* table : supported_kernels()) {
    use_kernels(table->name);
    if (table != &before) body(table->name);
  }
  use_kernels(before.name);
}

template <typename Body>
void for_each_shape(const Body& body) {
  for (const auto& [m, n, k] : kShapes) for_each_mode(m, n, k, body);
  for (const auto& [m, n, k] : kLargeShapes) for_each_mode(m, n, k, body);
}

bool same_product(Product& x, Product& y) {
  return std::memcmp(x.c.values.data(), y.c.values.data(), x.c.values.size() * sizeof(float)) == 0;
}

TEST_CASE("dense product: oneDNN serves the instruction set of the start, gemm everything else") {
  const std::string_view at_start = kernels().name;
#ifdef TRITGRAD_WITH_ONEDNN
  const std::string_view fast = at_start == "reference" ? "Eigen" : "oneDNN";
#else
  const std::string_view fast = "Eigen";
#endif
  CHECK(dense_product_library() == fast);
  for_each_table([&](std::string_view name) {
    const bool same_floats =
        name == at_start || (name.starts_with("avx512") && at_start.starts_with("avx512"));
    CHECK(dense_product_library() == (same_floats ? fast : "Eigen"));
  });
  CHECK(dense_product_library() == fast);
}

TEST_CASE("dense product: every transpose, odd shapes and strides are within the rounding bound") {
  for_each_shape([](const GemmShape& shape) {
    const ExpectedProduct expected(shape);
    for_both_libraries([&](const char* name) {
      for (const std::int64_t padding : {0, 3}) expected.check(name, dense_product, padding);
    });
  });
}

TEST_CASE("dense product: empty dimensions give zeros or leave the output alone") {
  for_each_table([](const char* name) {
    for (const auto& [m, n, k] :
         {std::array<std::int64_t, 3>{5, 6, 0}, {0, 6, 4}, {5, 0, 4}, {0, 0, 0}}) {
      for_each_mode(m, n, k, [&](const GemmShape& shape) {
        ExpectedProduct(shape).check(name, dense_product, 2);
      });
    }
  });
}

TEST_CASE(
    "dense product: operands pass on infinities and NaN; an output that is not added to"
    " is not read") {
  for_each_table([](const char* name) {
    CAPTURE(name);
    for (const std::int64_t side : {20, 300}) {
      Product product({side, side, side}, 0);
      std::fill(product.c.values.begin(), product.c.values.end(),
                std::numeric_limits<float>::quiet_NaN());
      product.a.at(3, 4) = std::numeric_limits<float>::infinity();
      product.b.at(5, 6) = std::numeric_limits<float>::quiet_NaN();
      product.run(dense_product);
      CHECK(std::isinf(product.c.at(3, 2)));
      CHECK(std::isnan(product.c.at(9, 6)));
      CHECK(std::isfinite(product.c.at(9, 2)));
    }
  });
}

TEST_CASE("dense product: the bits do not depend on the thread or on how many there are") {
  for_both_libraries([](const char* name) {
    CAPTURE(name);
    for_each_shape([](const GemmShape& shape) {
      const Product fresh(shape, 1);
      // Outside a parallel loop a library would start threads of its own, inside it would not.
      Product alone = fresh;
      alone.run(dense_product);
      for (int threads : {1, 2, 4}) {
        set_thread_count(threads);
        std::vector<Product> together(static_cast<std::size_t>(threads), fresh);  // one on each
        parallel_for(threads, [&](std::int64_t i) {
          together[static_cast<std::size_t>(i)].run(dense_product);
        });
        for (Product& product : together) REQUIRE(same_product(product, alone));
      }
      set_thread_count(0);
    });
  });
}

TEST_CASE("dense product: the caller's number of threads survives") {
  const int before = thread_count();
  Product product({64, 64, 64}, 0);
  product.run(dense_product);
  CHECK(thread_count() == before);
  {
    const OnThisThread held;
    CHECK(thread_count() == 1);
  }
  CHECK(thread_count() == before);
}

TEST_CASE("dense product: the bits do not depend on the place in memory") {
  for_both_libraries([](const char* name) {
    CAPTURE(name);
    for_each_shape([](const GemmShape& shape) {
      const Product fresh(shape, 0);
      Product first = fresh;
      first.run(dense_product);
      const auto moved = [](const std::vector<float>& values, std::int64_t offset) {
        Guarded<float> copy(std::ssize(values), offset % 16);
        std::copy(values.begin(), values.end(), copy.data());
        return copy;
      };
      const bool small = first.c.values.size() < 10000;
      for (std::int64_t offset = 0; offset < 16; offset += small ? 1 : 5) {
        Guarded<float> a = moved(fresh.a.values, offset);
        Guarded<float> b = moved(fresh.b.values, 3 * offset + 1);
        Guarded<float> c = moved(fresh.c.values, 7 * offset + 2);
        Guarded<float> expected = moved(first.c.values, 0);
        dense_product(shape, a.data(), fresh.a.stride, b.data(), fresh.b.stride, c.data(),
                      fresh.c.stride);
        REQUIRE(same_bits(c, expected, std::ssize(first.c.values)));
      }
    });
  });
}

}  // namespace
}  // namespace tritgrad::test::test_dense_product
