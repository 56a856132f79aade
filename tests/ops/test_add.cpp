// Sums: gradients of both addends, also where they are one.
#include "engine/memory/parallel.h"
#include "ops/add.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_add {

void for_each_add_case(const VisitOpCase& visit) {
  constexpr std::int64_t kAddends = 7 * 11;
  OpCase two{"add",
             {},
             [](Tape& t, const Var& x) {
               const Var a = part_of(t, x, 0, {7, 11}), b = part_of(t, x, kAddends, {7, 11});
               const Var y = add(t, a, b);
               forget_unread({a, b});
               return y;
             },
             [](const Values& v) {
               Values y;
               for (std::size_t i = 0; i < kAddends; ++i) y.push_back(v[i] + v[kAddends + i]);
               return asymmetric_scalar(y);
             }};
  two.x_shape = {14, 11};
  visit(two);
  visit({"add",
         {},
         [](Tape& t, const Var& x) { return add(t, x, x); },
         [](const Values& v) {
           Values y;
           for (const Complex& x : v) y.push_back(2.0 * x);
           return asymmetric_scalar(y);
         }});
}

TEST_CASE("add: every element is the sum, and what a constant is added to keeps its gradient") {
  constexpr std::int64_t kSize = 3 * 40'000;  // more than one unit of work has
  std::vector<float> a = numbers(kSize, 1), b = numbers(kSize, 2);
  Tape tape;
  const Var x = tape.variable({3, 40'000});
  std::copy(a.begin(), a.end(), x.value.data);
  const Var constant = tape.constant({b.data(), {3, 40'000}});
  for (const bool first : {false, true}) {
    const Var y = first ? add(tape, x, constant) : add(tape, constant, x);
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(y.value.data[i] == a[i] + b[i]);
    CHECK(y.wants_grad());
  }
  CHECK_FALSE(add(tape, constant, constant).wants_grad());
}

TEST_CASE("add: shapes that differ are refused") {
  Tape tape;
  const Var a = tape.variable({2, 3}), b = tape.variable({3, 2});
  CHECK(refusal([&] { add(tape, a, b); }) ==
        "add: a has shape [2 x 3] but b has shape [3 x 2]; equal shapes are needed");
}

}  // namespace tritgrad::test::test_add
