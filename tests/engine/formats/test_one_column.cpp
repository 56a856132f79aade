// Matrices of one column, such as the scales of rows: blocks go down the rows of some formats.
#include <cmath>

#include "tests/support/single.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_one_column {

TEST_CASE("formats: blocks of one column may go down the rows where that is said") {
  constexpr std::int64_t n = 645, from = 77;
  for (FormatKind kind : formats_for(kWeight | kScale | kM | kV)) {
    CAPTURE(std::string(format_name(kind)));
    FormatSpec spec = spec_of(kind);
    spec.rounding = Rounding::kNearest;
    CHECK_FALSE(spec.joins_rows(2));
    const bool joins = kind == FormatKind::kScale16 || kind == FormatKind::kBf16;
    REQUIRE(spec.joins_rows(1) == joins);
    if (!joins) continue;
    CHECK(spec.traits().descends_by_encoding);
    std::vector<float> written = numbers(n, 21);
    for (float& number : written) number = std::abs(number) + 0.01f;
    Storage joined(spec, {n, 1}, Category::kWeights), row_by_row(spec, {n, 1}, Category::kWeights);
    joined.encode({0, 0, from}, written.data(), {1, 2, 3});
    joined.encode({from, 0, n - from}, written.data() + from, {1, 2, 3});
    std::vector<float> values(n), master(n), their_values(n), their_master(n);
    for (std::int64_t row = 0; row < n; ++row) {
      row_by_row.encode({row, 0, 1}, written.data() + row, {1, 2, 3});
      row_by_row.decode_value({row, 0, 1}, their_values.data() + row);
      row_by_row.decode_master({row, 0, 1}, their_master.data() + row);
    }
    joined.decode_rows(0, from, values.data());
    joined.decode_rows(from, n, values.data() + from);
    joined.decode_master({0, 0, from}, master.data());
    joined.decode_master({from, 0, n - from}, master.data() + from);
    CHECK(all_bytes(joined) == all_bytes(row_by_row));
    CHECK(values == their_values);
    CHECK(master == their_master);
  }
}

TEST_CASE("optim: a matrix of one column steps as one of one row does") {
  constexpr std::int64_t n = 1500;
  for (FormatKind kind : {FormatKind::kScale16, FormatKind::kBf16}) {
    for (RuleKind rule : {RuleKind::kAdamw, RuleKind::kSign, RuleKind::kLion}) {
      for (double decay : {0.0, 0.1}) {
        GroupSpec group;
        group.rule.kind = rule;
        group.rule.weight_decay = decay;
        group.lr = 0.05;
        group.m = group.v = format(FormatKind::kBf16, Rounding::kNearest);
        Single column({n, 1}, format(kind, Rounding::kNearest), group);
        Single row({1, n}, format(kind, Rounding::kNearest), group);
        for (std::uint32_t step = 0; step < 3; ++step) {
          column.step(numbers(n, step));
          row.step(numbers(n, step));
        }
        CAPTURE(static_cast<int>(rule));
        CAPTURE(std::string(format_name(kind)));
        CHECK(all_bytes(column.w().storage()) == all_bytes(row.w().storage()));
        CHECK(column.state() == row.state());
      }
    }
  }
}

}  // namespace tritgrad::test::test_one_column
