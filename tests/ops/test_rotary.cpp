// Rotary positions: every pair against its angle in double, forward and back.
#include "engine/memory/parallel.h"
#include "ops/rotary.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_rotary {
namespace {

double angle(std::int64_t position, std::int64_t pair, std::int64_t size) {
  return static_cast<double>(position) *
         std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(size));
}

// Rows of heads of `size` elements, turned.
template <typename T>
std::vector<T> turned(const std::vector<T>& x, std::int64_t heads, std::int64_t size,
                      std::int64_t tokens) {
  std::vector<T> y(x.size());
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const auto place = static_cast<std::int64_t>(i);
    const double by = angle(place / (heads * size) % tokens, place % size / 2, size);
    y[i] = x[i] * std::cos(by) - x[i + 1] * std::sin(by);
    y[i + 1] = x[i] * std::sin(by) + x[i + 1] * std::cos(by);
  }
  return y;
}

struct Rotated {
  std::vector<float> y, dx;
  friend bool operator==(const Rotated&, const Rotated&) = default;
};

// y and dx where the gradient of y is x; dx begins at `before` unless 0.
Rotated rotated(const std::vector<float>& numbers, std::int64_t heads, std::int64_t size,
                std::int64_t tokens, float before = 0.0f) {
  Tape tape;
  const Var x =
      tape.variable({static_cast<std::int64_t>(numbers.size()) / (heads * size), heads * size});
  std::copy(numbers.begin(), numbers.end(), x.value.data);
  const Var y = rotary(tape, x, heads, tokens);
  const Var loss = tape.variable({1});
  tape.record(loss, {x}, {}, [&tape, x, y, before] {
    if (before != 0.0f) tape.grad_to(x).fill(before);
    std::copy_n(x.value.data, x.value.size(), tape.target(y).grad.data);
  });
  const std::vector<float> value(y.value.values().begin(), y.value.values().end());
  tape.backward(loss, [](Parameter&) {});
  return {value, {x.grad().values().begin(), x.grad().values().end()}};
}

}  // namespace

void for_each_rotary_case(const VisitOpCase& visit) {
  for (const std::int64_t heads : {1, 3}) {
    OpCase c{"rotary",
             {},
             [=](Tape& t, const Var& x) { return rotary(t, x, heads, 5); },
             [=](const Values& v) { return asymmetric_scalar(turned(v, heads, 12 / heads, 5)); }};
    c.x_shape = {10, 12};
    visit(c);
  }
}

// Cosine and product are rounded, then the difference: three times 2^-24 of the terms. The angle of
// position 2100 is off by 2^-42 at most, far less.
TEST_CASE("rotary: pairs of neighbours are turned by the angle of their position") {
  for (const std::int64_t size : {2, 6, 64}) {
    constexpr std::int64_t kTokens = 2100, kHeads = 2;
    const std::vector<float> x = numbers(kTokens * kHeads * size, 3);
    const std::vector<double> exact =
        turned(std::vector<double>(x.begin(), x.end()), kHeads, size, kTokens);
    const Rotated actual = rotated(x, kHeads, size, kTokens);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double terms = std::abs(double{x[i]}) + std::abs(double{x[i ^ 1]});
      REQUIRE(std::abs(double{actual.y[i]} - exact[i]) <= (3 * 0x1p-24 + 0x1p-40) * terms);
    }
  }
}

TEST_CASE("rotary: the gradient is turned back, and added to what is there") {
  constexpr std::int64_t kTokens = 40, kHeads = 3, kSize = 10;
  const std::vector<float> x = numbers(2 * kTokens * kHeads * kSize, 4);
  const Rotated fresh = rotated(x, kHeads, kSize, kTokens);
  // What is turned forward and back again is what it was, up to the roundings of two turns.
  const Rotated back = rotated(fresh.y, kHeads, kSize, kTokens);
  const Rotated added = rotated(x, kHeads, kSize, kTokens, 2.0f);
  for (std::size_t i = 0; i < x.size(); ++i) {
    REQUIRE(std::abs(double{back.dx[i]} - double{x[i]}) <= 2 * 3 * 0x1p-24 * 2.0);
    REQUIRE(added.dx[i] == 2.0f + fresh.dx[i]);
  }
}

TEST_CASE("rotary: one row at a position has the bits of the op, which any number of threads has") {
  constexpr std::int64_t kTokens = 130, kHeads = 4, kSize = 32;
  const std::vector<float> x = numbers(3 * kTokens * kHeads * kSize, 5);
  set_thread_count(1);
  const Rotated one = rotated(x, kHeads, kSize, kTokens);
  set_thread_count(2);
  CHECK(rotated(x, kHeads, kSize, kTokens) == one);
  set_thread_count(0);
  std::vector<float> rows = x;
  for (std::int64_t row = 0; row < 3 * kTokens; ++row) {
    rotate(rows.data() + row * kHeads * kSize, kHeads, kSize, row % kTokens);
  }
  CHECK(rows == one.y);
}

TEST_CASE("rotary: heads of an odd size and parts of sequences are refused") {
  Tape tape;
  const Var x = tape.variable({6, 12});
  for (const std::int64_t heads : {0, 4, 5}) {
    CHECK(refusal([&] { rotary(tape, x, heads, 3); }) ==
          "rotary: x has shape [6 x 12], whose rows are not " + std::to_string(heads) +
              " heads of an even size");
  }
  CHECK(refusal([&] { rotary(tape, x, 2, 4); }) ==
        "rotary: x has shape [6 x 12], whose rows are not sequences of 4 tokens");
}

}  // namespace tritgrad::test::test_rotary
