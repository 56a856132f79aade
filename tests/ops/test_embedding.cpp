// Rows of a table by token: every format's rows, gradients by token, and what is refused.
#include "engine/memory/parallel.h"
#include "ops/add.h"
#include "ops/embedding.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_embedding {
namespace {

using Tokens = std::vector<std::int32_t>;

// The gradient of a table [vocabulary x width] where that of row i of y is `rows`' row i.
std::vector<float> table_gradient(std::int64_t vocabulary, std::int64_t width, const Tokens& tokens,
                                  const std::vector<float>& rows, bool* finite = nullptr) {
  Parameter table =
      make_parameter("table", Role::kWeight, {vocabulary, width}, spec_of(FormatKind::kFp32));
  Tape tape;
  const Var y = embedding(tape, tokens, table);
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {},
              [&tape, &rows, y] { std::copy(rows.begin(), rows.end(), tape.target(y).grad.data); });
  std::vector<float> gradient;
  tape.backward(loss, [&](Parameter& parameter) {
    gradient.assign(parameter.grad.values().begin(), parameter.grad.values().end());
    if (finite != nullptr) *finite = parameter.gradient_is_finite();
  });
  return gradient;
}

Tokens random_tokens(std::int64_t n, std::int32_t vocabulary) {
  Tokens tokens;
  for (std::int64_t i = 0; i < n; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(random_bits({5, 6, 7}, static_cast<std::uint64_t>(i)) %
                                  static_cast<std::uint32_t>(vocabulary)));
  }
  return tokens;
}

}  // namespace

void for_each_embedding_case(const VisitOpCase& visit) {
  static const Tokens tokens{4, 0, 4, 2, 4, 0, 1};  // one is missing, one comes three times
  Parameter table = make_parameter("table", Role::kWeight, {5, 11}, spec_of(FormatKind::kFp32));
  visit({"embedding",
         {&table},
         [&](Tape& t, const Var& x) { return add(t, embedding(t, tokens, table), x); },
         [](const Values& v) {
           Values y;
           for (std::size_t i = 0; i < 77; ++i) {
             y.push_back(v[i] + v[77 + 11 * static_cast<std::size_t>(tokens[i / 11]) + i % 11]);
           }
           return asymmetric_scalar(y);
         }});
}

TEST_CASE("embedding: rows are those of the table, in every format") {
  for (const FormatKind kind : formats_for(kWeight)) {
    CAPTURE(std::string(format_name(kind)));
    for (const std::int64_t width : {7, 64, 400}) {
      Parameter table = make_parameter("table", Role::kWeight, {9, width}, spec_of(kind));
      std::vector<float> all(static_cast<std::size_t>(9 * width));
      table.storage().decode_rows(0, 9, all.data());
      const Tokens tokens{8, 3, 3, 0, 5};
      Tape tape;
      const Var y = embedding(tape, tokens, table);
      REQUIRE(y.shape() == Shape{5, width});
      for (std::int64_t i = 0; i < 5; ++i) {
        const auto row = all.begin() + tokens[static_cast<std::size_t>(i)] * width;
        CHECK(std::equal(row, row + width, y.value.row(i)));
      }
    }
  }
}

TEST_CASE("embedding: gradients are added in the order of the rows, on any number of threads") {
  constexpr std::int64_t kWidth = 150, kTokens = 2000;
  for (const std::int32_t vocabulary : {3, 256, 5000}) {
    const Tokens tokens = random_tokens(kTokens, vocabulary);
    const std::vector<float> rows = numbers(kTokens * kWidth, 2);
    std::vector<float> expected(static_cast<std::size_t>(vocabulary * kWidth));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto token = static_cast<std::size_t>(tokens[i / kWidth]);
      expected[token * kWidth + i % kWidth] += rows[i];
    }
    for (const int threads : {1, 2, 3}) {
      set_thread_count(threads);
      CHECK(table_gradient(vocabulary, kWidth, tokens, rows) == expected);
    }
    set_thread_count(0);
  }
}

TEST_CASE("embedding: a gradient that is not finite is found in a table of any size") {
  for (const std::int64_t vocabulary : {3, 100}) {
    for (const float bad : {1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
      std::vector<float> rows(2 * 8, 1.0f);
      rows[9] = bad;
      bool finite = false;
      table_gradient(vocabulary, 8, {1, 2}, rows, &finite);
      CHECK(finite == std::isfinite(bad));
    }
  }
}

TEST_CASE("embedding: tokens that the table does not have, and none, are refused") {
  Parameter table = make_parameter("tok.weight", Role::kWeight, {5, 4}, spec_of(FormatKind::kFp32));
  Tape tape;
  for (const std::int32_t token : {-1, 5}) {
    const Tokens tokens{0, token};
    CHECK(refusal([&] { embedding(tape, tokens, table); }) ==
          "embedding: token " + std::to_string(token) +
              " at place 1 is outside 0..4, the rows of 'tok.weight'; take the vocabulary that the "
              "model was made for");
  }
  CHECK(refusal([&] { embedding(tape, {}, table); }) ==
        "embedding: no tokens found, at least one expected");
}

}  // namespace tritgrad::test::test_embedding
