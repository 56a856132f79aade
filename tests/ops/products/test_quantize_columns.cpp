// Columns of floats as rows of codes: every table against what is asked for, to the byte.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/columns.h"
#include "ops/products/quantized.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_quantize_columns {
namespace {

constexpr std::array<float, 7> kFactors{1.0f, 0.5f, -3.0f, 1e30f, 0.0f, 0.37f, 1.1f};
constexpr std::array<float, 6> kInverses{1.0f, 2.0f, 1e-20f, -0.25f, 0.7f, 33.3f};

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
      factors[r] = kFactors.at(static_cast<std::size_t>(r % 7));
    for (std::int64_t c = 0; c < columns; ++c) {
      inverse[c] = kInverses.at(static_cast<std::size_t>(c % 6));
    }
  }

  // Returns the code of row r of x, or of one that fills up four.
  std::int8_t code(std::int64_t r, std::int64_t c) {
    if (r >= rows) return 0;
    const float level = x[r * ld_x + c] * factors[r] * inverse[c];
    return static_cast<std::int8_t>(std::nearbyint(std::clamp(level, -127.0f, 127.0f)));
  }

  std::int64_t rows, columns, ld_x;
  Guarded<float> x, factors, inverse;
};

void check_columns(const KernelTables& table, ColumnsCase& c, std::int64_t offset) {
  const std::int64_t padded = (c.rows + 3) / 4 * 4, ld = padded + offset;
  Twins<std::int8_t> codes(c.columns * ld, offset,
                           [](std::int64_t i) { return static_cast<std::int8_t>(i % 100); });
  for (std::int64_t column = 0; column < c.columns; ++column) {
    for (std::int64_t r = 0; r < padded; ++r) {
      codes.expected[column * ld + r] = c.code(r, column);
    }
  }
  table.products.quantize_columns(codes.actual.data(), ld, c.x.data(), c.ld_x, c.factors.data(),
                                  c.inverse.data(), c.rows, c.columns);
  REQUIRE(same_bits(codes.expected, codes.actual, c.columns * ld));
}

// Codes of NaN may be any, but what fills up four rows is 0: other sums would change.
TEST_CASE("quantize columns: rows that fill up four are zero even where a factor is no number") {
  constexpr std::int64_t kRows = 5, kColumns = 20, kLd = 8;
  const std::vector<float> x(kRows * kColumns, 1.0f), factors(kRows, 1.0f);
  for (const float inverse :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> inverses(kColumns, inverse);
    for (const KernelTables* table : supported_kernels()) {
      CAPTURE(table->name);
      std::vector<std::int8_t> codes(kColumns * kLd, 1);
      table->products.quantize_columns(codes.data(), kLd, x.data(), kColumns, factors.data(),
                                       inverses.data(), kRows, kColumns);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        if (static_cast<std::int64_t>(i) % kLd >= kRows) CHECK(codes[i] == 0);
      }
    }
  }
}

// As many rows as one tile of ops/columns.h has, and more, each with a factor of its own.
TEST_CASE("quantize columns: rows keep their factors however many there are") {
  constexpr std::int64_t kColumns = 300;
  for (const std::int64_t rows : {std::int64_t{37}, kPieceRows, kPieceRows + 5}) {
    CAPTURE(rows);
    std::vector<float> numbers(static_cast<std::size_t>(rows * kColumns));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = random_normal(kKey, i);
    std::vector<float> factors(static_cast<std::size_t>(rows));
    for (std::size_t r = 0; r < factors.size(); ++r)
      factors[r] = 0.5f + 0.001f * static_cast<float>(r);
    const Tensor x{numbers.data(), {rows, kColumns}};
    Tape tape;
    const QuantizedRows q = quantize_columns(tape, x, factors.data());
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const auto scaled = [&](std::int64_t r) {
        return x.row(r)[c] * factors[static_cast<std::size_t>(r)];
      };
      float largest = 0.0f;
      for (std::int64_t r = 0; r < rows; ++r) largest = std::max(largest, std::abs(scaled(r)));
      REQUIRE(q.scales[c] == largest / 127.0f);
      for (std::int64_t r = 0; r < q.ld; ++r) {
        const float level = r < rows ? scaled(r) * (127.0f / largest) : 0.0f;
        REQUIRE(q.codes[c * q.ld + r] == static_cast<std::int8_t>(std::nearbyint(level)));
      }
    }
  }
}

TEST_CASE("quantize columns: every table writes the codes, and nothing else") {
  for (const KernelTables* table : supported_kernels()) {
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
}  // namespace tritgrad::test::test_quantize_columns
