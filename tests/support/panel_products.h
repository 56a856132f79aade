// Products with a panel, against the reference.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/kernel_inputs.h"

namespace tritgrad::test {

inline int draw(std::int64_t i, int low, int high) {
  return low + static_cast<int>(random_below(kKey, static_cast<std::uint64_t>(i),
                                             static_cast<std::uint32_t>(high - low + 1)));
}

// The largest sums of pairs come from equal signs at the ends of the range.
inline std::int8_t extreme(std::int64_t i, int limit) {
  const int kind = draw(i, 0, 3);
  return static_cast<std::int8_t>(kind == 0   ? limit
                                  : kind == 1 ? -limit
                                              : draw(i + 1000003, -limit, limit));
}

inline Guarded<std::int8_t> bytes(std::int64_t n, std::int64_t offset, int limit,
                                  bool all_limit = false) {
  Guarded<std::int8_t> x(n, offset);
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = all_limit ? static_cast<std::int8_t>(limit) : extreme(i + offset, limit);
  }
  return x;
}

struct PanelCase {
  int a_limit;      // largest magnitude of a
  int panel_limit;  // largest byte
  PanelRange range;
};
inline constexpr PanelCase kPanelCases[] = {{127, 2, PanelRange::kTrits},
                                            {1, 255, PanelRange::kTrits},
                                            {127, 127, PanelRange::kSevenBits},
                                            {127, 255, PanelRange::kBytes}};

// The first `columns` columns, for sums that begin anew (`add` = false) and that go on.
inline void compare_product(const ProductKernels& table, const PanelCase& c, std::int64_t rows,
                            std::int64_t columns, std::int64_t groups, std::int64_t offset,
                            bool all_limit) {
  const std::int64_t lda = 4 * groups + offset;
  Guarded<std::int8_t> a = bytes(rows * lda, offset, c.a_limit, all_limit);
  Guarded<std::uint8_t> panel(groups * 4 * kPanelColumns, offset);
  for (std::int64_t i = 0; i < groups * 4 * kPanelColumns; ++i) {
    panel[i] = static_cast<std::uint8_t>(all_limit ? c.panel_limit : draw(i, 0, c.panel_limit));
  }
  const std::int64_t ldc = kPanelColumns + offset;
  // Any memory may be asked for: runs of no bytes, of many, that begin anywhere.
  const PrefetchList ahead{{{panel.data() + offset, rows, 5 * groups, 77}, {a.data(), 3, 1, 0}}};
  for (const bool add : {false, true}) {
    Twins<std::int32_t> sums(rows * ldc, offset, [](std::int64_t i) { return draw(i, -9, 9); });
    reference_kernels().products.multiply_panel(sums.expected.data(), ldc, a.data(), lda, rows,
                                                columns, panel.data(), groups, c.range, add, {});
    table.multiply_panel(sums.actual.data(), ldc, a.data(), lda, rows, columns, panel.data(),
                         groups, c.range, add, ahead);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < columns; ++i) {
        REQUIRE(sums.expected[r * ldc + i] == sums.actual[r * ldc + i]);
      }
      // Between the rows.
      for (std::int64_t i = kPanelColumns; i < ldc; ++i) {
        REQUIRE(sums.actual[r * ldc + i] == sums.expected[r * ldc + i]);
      }
    }
    for (std::int64_t i = 1; i <= 32; ++i) {
      REQUIRE(sums.actual[-i] == sums.expected[-i]);
      REQUIRE(sums.actual[rows * ldc + i - 1] == sums.expected[rows * ldc + i - 1]);
    }
  }
}

// Pieces of the depth add up to what they give one by one, with rows that overlap, as windows do.
inline void compare_pieces(const ProductKernels& table, const PanelCase& c, std::int64_t rows,
                           std::int64_t columns, std::int64_t groups, std::int64_t pieces) {
  const std::int64_t lda = 3, a_stride = 4 * groups + 5, stride = groups * 4 * kPanelColumns + 64;
  const std::int64_t n = rows * lda + 4 * groups + pieces * a_stride;
  Guarded<std::int8_t> a = bytes(n, 1, c.a_limit);
  Guarded<std::uint8_t> panel(pieces * stride, 1);
  for (std::int64_t i = 0; i < pieces * stride; ++i) {
    panel[i] = static_cast<std::uint8_t>(draw(i, 0, c.panel_limit));
  }
  for (const bool add : {false, true}) {
    Twins<std::int32_t> sums(rows * kPanelColumns, 0,
                             [](std::int64_t i) { return draw(i, -9, 9); });
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      reference_kernels().products.multiply_panel(
          sums.expected.data(), kPanelColumns, a.data() + piece * a_stride, lda, rows, columns,
          panel.data() + piece * stride, groups, c.range, add || piece > 0, {});
    }
    table.multiply_panel(sums.actual.data(), kPanelColumns, a.data(), lda, rows, columns,
                         panel.data(), {groups, pieces, a_stride, stride}, c.range, add, {});
    for (std::int64_t i = 0; i < rows * kPanelColumns; ++i) {
      if (i % kPanelColumns < columns) REQUIRE(sums.expected[i] == sums.actual[i]);
    }
  }
}

// Compares products of as many rows, columns and groups as there are ways to cut them.
inline void compare_products(const ProductKernels& table) {
  for (const PanelCase& c : kPanelCases) {
    for (std::int64_t rows : {1, 5, 8, 14, 17}) {
      for (std::int64_t columns : {9, 16, 31, 48, 64}) {
        for (std::int64_t groups : {1, 7, 16, 18, 65}) {
          for (std::int64_t pieces : {2, 3}) {
            compare_pieces(table, c, rows, columns, groups, pieces);
          }
        }
      }
    }
  }
  for (const PanelCase& c : kPanelCases) {
    for (std::int64_t rows : {0, 1, 2, 3, 4, 5, 6, 8, 11, 12, 15, 16, 17, 31, 32, 33}) {
      for (std::int64_t groups : {0, 1, 2, 7, 15, 16, 17, 31, 32, 63, 64, 65, 80, 129}) {
        CAPTURE(rows);
        CAPTURE(groups);
        compare_product(table, c, rows, kPanelColumns, groups, rows % 4, false);
        compare_product(table, c, rows, kPanelColumns, groups, 0, true);
      }
      for (std::int64_t columns : {1, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63}) {
        CAPTURE(rows);
        CAPTURE(columns);
        compare_product(table, c, rows, columns, 65, rows % 4, false);
      }
    }
  }
}

// Makes one product twice, with release() after each.
template <typename Release>
void check_products_between(const ProductKernels& table, const Release& release) {
  const std::vector<std::int8_t> a(16 * 64, 3);
  const std::vector<std::uint8_t> panel(64 * kPanelColumns, 2);
  for (int time = 0; time < 2; ++time) {
    std::vector<std::int32_t> sums(16 * kPanelColumns, -1);
    table.multiply_panel(sums.data(), kPanelColumns, a.data(), 64, 16, kPanelColumns, panel.data(),
                         16, PanelRange::kBytes, false, {});
    CHECK(std::count(sums.begin(), sums.end(), 3 * 2 * 64) == std::ssize(sums));
    release();
  }
}

}  // namespace tritgrad::test
