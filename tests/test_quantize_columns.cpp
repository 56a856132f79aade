// Columns of floats as rows of codes: every table against what is asked for, to the byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/kernel_inputs.h"

namespace tritgrad {
namespace {

constexpr std::array<float, 5> kFactors{1.0f, 0.5f, -3.0f, 1e30f, 0.0f};
constexpr std::array<float, 4> kInverses{1.0f, 2.0f, 1e-20f, -0.25f};

struct ColumnsCase {
  ColumnsCase(std::int64_t rows_, std::int64_t columns_, std::int64_t offset)
      : rows(rows_),
        columns(columns_),
        ld_x(columns + offset),
        x(rows * ld_x, offset),
        factors(rows, offset),
        inverse(columns, offset) {
    for (std::int64_t i = 0; i < rows * ld_x; ++i) {
      const float number = awkward_float(i, 3);
      x[i] = std::isfinite(number) ? number : 1.5f;  // infinity times zero: any code
    }
    for (std::int64_t r = 0; r < rows; ++r)
      factors[r] = kFactors.at(static_cast<std::size_t>(r % 5));
    for (std::int64_t c = 0; c < columns; ++c) {
      inverse[c] = kInverses.at(static_cast<std::size_t>(c % 4));
    }
  }

  // Of row r of x, or of one that fills up four.
  std::int8_t code(std::int64_t r, std::int64_t c) {
    if (r >= rows) return 0;
    const float level = x[r * ld_x + c] * factors[r] * inverse[c];
    return static_cast<std::int8_t>(std::nearbyint(std::clamp(level, -127.0f, 127.0f)));
  }

  std::int64_t rows, columns, ld_x;
  Guarded<float> x, factors, inverse;
};

void check_columns(const KernelTable& table, ColumnsCase& c, std::int64_t offset) {
  const std::int64_t padded = (c.rows + 3) / 4 * 4, ld = padded + offset;
  Twins<std::int8_t> codes(c.columns * ld, offset,
                           [](std::int64_t i) { return static_cast<std::int8_t>(i % 100); });
  for (std::int64_t column = 0; column < c.columns; ++column) {
    for (std::int64_t r = 0; r < padded; ++r) {
      codes.expected[column * ld + r] = c.code(r, column);
    }
  }
  table.quantize_columns(codes.actual.data(), ld, c.x.data(), c.ld_x, c.factors.data(),
                         c.inverse.data(), c.rows, c.columns);
  REQUIRE(same_bits(codes.expected, codes.actual, c.columns * ld));
}

TEST_CASE("quantize columns: every table writes the codes, and nothing else") {
  for (const KernelTable* table : supported_kernels()) {
    CAPTURE(table->name);
    for (std::int64_t rows : {0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 130, 192}) {
      for (std::int64_t columns : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 48}) {
        for (std::int64_t offset : {0, 4, 7}) {
          CAPTURE(rows);
          CAPTURE(columns);
          CAPTURE(offset);
          ColumnsCase c(rows, columns, offset);
          check_columns(*table, c, offset);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad
