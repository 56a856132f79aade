// The product in tile registers (AMX), on every processor: its loops and the shapes that it asks
// for, with tiles in memory. What the instructions themselves give is compared where there are any
// (test_kernel_integers.cpp).
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/panel_products.h"

#define TRITGRAD_TARGET in_test
#include "ops/kernels/products/tile_product-inl.h"
#include "tests/support/emulated_tiles.h"

namespace tritgrad::test::test_tile_product {
namespace {

using in_test::EmulatedTiles;

ProductKernels with_tiles() {
  ProductKernels table = reference_kernels().products;
  table.multiply_panel = in_test::multiply_in_tiles<EmulatedTiles>;
  return table;
}

}  // namespace

TEST_CASE("tile product: equals the reference, extremes included") {
  compare_products(with_tiles());
}

TEST_CASE("tile product: reads and writes nothing past its operands") {
  // As large as they must be, so that the address sanitizer sees the first byte beyond.
  constexpr std::int64_t kRows = 17, kGroups = 17, kLast = 5;  // rows, groups, columns of the end
  for (const std::int64_t columns : {kLast, kPanelColumns}) {
    const std::vector<std::int8_t> a(kRows * 4 * kGroups, 1);
    const std::vector<std::uint8_t> panel(kGroups * 4 * kPanelColumns, 2);
    const std::int64_t tiles = (columns + 15) / 16;
    std::vector<std::int32_t> sums(static_cast<std::size_t>(kRows * 16 * tiles), -1);
    with_tiles().multiply_panel(sums.data(), 16 * tiles, a.data(), 4 * kGroups, kRows, columns,
                                panel.data(), kGroups, PanelRange::kBytes, false, {});
    CHECK(std::count(sums.begin(), sums.end(), 2 * 4 * kGroups) == std::ssize(sums));
  }
}

TEST_CASE("tile product: relies on no shapes that the last one left") {
  check_products_between(with_tiles(), EmulatedTiles::release);
}

}  // namespace tritgrad::test::test_tile_product
