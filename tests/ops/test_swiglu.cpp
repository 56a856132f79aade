// The gated unit: gradients of both inputs, also where they are one.
#include "engine/memory/parallel.h"
#include "ops/swiglu.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_swiglu {
namespace {

template <typename T>
T silu(const T& x) {
  return x / (1.0 + std::exp(-x));
}

// y and the gradients of gate and up.
struct Unit {
  std::vector<float> y, dgate, dup;
  friend bool operator==(const Unit&, const Unit&) = default;
};

// With the gradient 1 + i % 5 of element i of y; those of the inputs begin at `before` unless 0.
Unit gated(const std::vector<float>& gates, const std::vector<float>& ups, float before = 0.0f) {
  Tape tape;
  const auto n = static_cast<std::int64_t>(gates.size());
  const Var gate = tape.variable({n}), up = tape.variable({n});
  std::copy(gates.begin(), gates.end(), gate.value.data);
  std::copy(ups.begin(), ups.end(), up.value.data);
  const Var y = swiglu(tape, gate, up);
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {}, [&tape, gate, up, y, before] {
    if (before != 0.0f) {
      for (const Var& x : {gate, up}) tape.grad_to(x).fill(before);
    }
    const Tensor dy = tape.target(y).grad;
    for (std::int64_t i = 0; i < dy.size(); ++i) dy.data[i] = static_cast<float>(1 + i % 5);
  });
  const std::vector<float> value(y.value.values().begin(), y.value.values().end());
  tape.backward(loss, [](Parameter&) {});
  return {value,
          {gate.grad().values().begin(), gate.grad().values().end()},
          {up.grad().values().begin(), up.grad().values().end()}};
}

}  // namespace

void for_each_swiglu_case(const VisitOpCase& visit) {
  constexpr std::int64_t kSize = 7 * 11;
  OpCase two{"swiglu",
             {},
             [](Tape& t, const Var& x) {
               const Var gate = part_of(t, x, 0, {7, 11}), up = part_of(t, x, kSize, {7, 11});
               const Var y = swiglu(t, gate, up);
               forget_unread({gate, up});
               return y;
             },
             [](const Values& v) {
               Values y;
               for (std::size_t i = 0; i < kSize; ++i) y.push_back(silu(v[i]) * v[kSize + i]);
               return asymmetric_scalar(y);
             }};
  two.x_shape = {14, 11};
  visit(two);
  visit({"swiglu",
         {},
         [](Tape& t, const Var& x) { return swiglu(t, x, x); },
         [](const Values& v) {
           Values y;
           for (const Complex& x : v) y.push_back(silu(x) * x);
           return asymmetric_scalar(y);
         }});
}

TEST_CASE("swiglu: values are those of the formula, and gradients are added to what is there") {
  std::vector<float> gates = numbers(2500, 1), ups = numbers(2500, 2);
  for (float& gate : gates) gate *= 20.0f;
  const Unit fresh = gated(gates, ups), added = gated(gates, ups, 3.0f);
  CHECK(added.y == fresh.y);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const double exact = silu(double{gates[i]}) * double{ups[i]};
    REQUIRE(std::abs(double{fresh.y[i]} - exact) <= 6 * 0x1p-24 * std::abs(exact));
    REQUIRE(added.dgate[i] == 3.0f + fresh.dgate[i]);
    REQUIRE(added.dup[i] == 3.0f + fresh.dup[i]);
  }
}

TEST_CASE("swiglu: NaN stays NaN, in values and in gradients") {
  const float nan = std::nanf("");
  const Unit unit = gated({nan, 1.0f, 0.5f}, {1.0f, nan, 0.5f});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(std::isnan(unit.y[i]) == (i < 2));
    CHECK(std::isnan(unit.dgate[i]) == (i < 2));
    CHECK(std::isnan(unit.dup[i]) == (i == 0));  // it does not depend on `up`
  }
}

TEST_CASE("swiglu: the same bits for any number of threads, and without a record") {
  const std::vector<float> gates = numbers(100'000, 1), ups = numbers(100'000, 2);
  set_thread_count(1);
  const Unit one = gated(gates, ups);
  set_thread_count(2);
  CHECK(gated(gates, ups) == one);
  set_thread_count(0);
  Tape tape;
  tape.set_recording(false);
  std::vector<float> gate = gates, up = ups;
  const Var y =
      swiglu(tape, tape.constant({gate.data(), {100'000}}), tape.constant({up.data(), {100'000}}));
  CHECK_FALSE(y.wants_grad());
  CHECK(std::equal(one.y.begin(), one.y.end(), y.value.data));
}

TEST_CASE("swiglu: shapes that differ are refused") {
  Tape tape;
  const Var gate = tape.variable({2, 3}), up = tape.variable({2, 4});
  CHECK(refusal([&] { swiglu(tape, gate, up); }) ==
        "swiglu: gate has shape [2 x 3] but up has shape [2 x 4]; equal shapes are needed");
}

}  // namespace tritgrad::test::test_swiglu
