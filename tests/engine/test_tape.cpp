#include "engine/tape.h"
#include "ops/activation.h"
#include "ops/bias.h"
#include "ops/loss.h"
#include "ops/products/linear.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_tape {
namespace {

// y = a + b, for graphs with shared subexpressions.
Var add(Tape& tape, const Var& a, const Var& b) {
  const Var y = tape.variable(a.shape());
  for (std::int64_t i = 0; i < y.value.size(); ++i)
    y.value.data[i] = a.value.data[i] + b.value.data[i];
  tape.record(y, {}, {}, [&tape, a, b, y] {
    const Tensor dy = tape.grad_of(y);
    for (const Var& input : {a, b}) {
      const Tensor dx = tape.grad_to(input);
      for (std::int64_t i = 0; i < dy.size(); ++i) dx.data[i] += dy.data[i];
    }
  });
  return y;
}

}  // namespace

TEST_CASE("tape: a graph of 100,000 nodes does not recurse") {
  Tape tape;
  const Var x = tape.variable({1});
  x.value.data[0] = 1.0f;
  Var y = x;
  for (int i = 0; i < 100000; ++i) y = relu(tape, y);
  tape.backward(y, [](Parameter&) {});
  CHECK(x.grad().data[0] == 1.0f);
}

TEST_CASE("tape: shared subexpressions cost one node each") {
  Tape tape;
  const Var x = tape.variable({1});
  x.value.data[0] = 1.0f;
  Var y = x;
  for (int i = 0; i < 60; ++i) y = add(tape, y, y);  // 2^60 paths from y to x
  CHECK(tape.node_count() == 60);
  tape.backward(y, [](Parameter&) {});
  CHECK(x.grad().data[0] == 0x1p60f);
}

TEST_CASE("tape: a parameter is ready once, when its last use has been walked") {
  Parameter bias = make_parameter("b", Role::kBias, {3}, {});
  Parameter weight = make_parameter("w", Role::kWeight, {3, 3}, {});
  Tape tape;
  const Var x = tape.variable({2, 3});
  x.value.fill(1.0f);
  // The bias is used twice: below and above the matrix.
  const Var y = add_bias(tape, linear(tape, add_bias(tape, x, bias), weight), bias);
  std::vector<std::string> order;
  tape.backward(asymmetric_scalar(tape, y), [&](Parameter& p) {
    order.push_back(p.name());
    CHECK(p.grad);
  });
  CHECK(order == std::vector<std::string>{"w", "b"});
  CHECK_FALSE(bias.grad);
  CHECK_FALSE(weight.grad);
}

TEST_CASE("tape: released gradients share memory, kept ones accumulate") {
  const std::int64_t before = ledger::live(Category::kGradients);
  std::deque<Parameter> weights;
  for (int i = 0; i < 4; ++i) {
    weights.push_back(make_parameter("w" + std::to_string(i), Role::kWeight, {128, 128}, {}, 0.1f));
  }
  const auto run = [&](Tape& tape, auto&& on_ready) {
    Var h = tape.variable({2, 128});
    h.value.fill(0.5f);
    for (Parameter& w : weights) h = linear(tape, h, w);
    tape.backward(asymmetric_scalar(tape, h), on_ready);
    tape.reset();
  };
  Tape tape;
  run(tape, [](Parameter&) {});
  const std::int64_t one_matrix = 128 * 128 * 4;
  const std::int64_t released = ledger::live(Category::kGradients) - before;
  CHECK(released >= one_matrix);
  CHECK(released < 2 * one_matrix);  // four matrices, one at a time

  for (Parameter& w : weights) w.keep_gradient();
  run(tape, [](Parameter&) {});
  const float once = weights[0].grad.data[5];
  run(tape, [](Parameter&) {});
  CHECK(once != 0.0f);
  CHECK(weights[0].grad.data[5] == 2.0f * once);
}

TEST_CASE("tape: a value that is kept elsewhere has a gradient, and no memory to read or reuse") {
  Tape tape;
  const Var x = tape.variable({4, 8});
  const Var y = tape.without_value({4, 8});
  CHECK_FALSE(y.value);
  CHECK(y.wants_grad());
  CHECK_THROWS_WITH_AS(tape.record(x, {y}, {}, [] {}),
                       "Tape::record: a value of shape [4 x 8] is to be read in backward, but has "
                       "no memory",
                       Error);
  tape.release(y);
  CHECK(tape.variable({4, 8}).value);
  tape.record(y, {}, {}, [&tape, x, y] {
    const Tensor dy = tape.grad_of(y);  // nothing uses y
    std::copy(dy.values().begin(), dy.values().end(), tape.target(x).grad.data);
  });
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {}, [] {});
  tape.backward(loss);
  for (const float dx : x.grad().values()) CHECK(dx == 0.0f);

  tape.reset();
  tape.set_recording(false);
  CHECK_FALSE(tape.without_value({4, 8}).wants_grad());
}

TEST_CASE("tape: an abandoned step leaves no trace") {
  Parameter weight = make_parameter("w", Role::kWeight, {3, 3}, {});
  Tape tape;
  const Var x = tape.variable({2, 3});
  x.value.fill(1.0f);
  linear(tape, x, weight);
  CHECK(weight.pending_uses == 1);
  tape.reset();
  CHECK(weight.pending_uses == 0);
}

TEST_CASE("tape: one that ends with an error gives back what it lent to parameters") {
  Parameter weight = make_parameter("w", Role::kWeight, {3, 3}, {});
  const auto fails_when_ready = [&] {
    Tape tape;
    const Var x = tape.variable({2, 3});
    x.value.fill(1.0f);
    const Var y = linear(tape, linear(tape, x, weight), weight);
    tape.backward(mean_squared_error(tape, y, x.value), [](Parameter& w) {
      CHECK(w.has_gradient());
      fail("as an optimizer may");
    });
  };
  for (int time = 0; time < 2; ++time) CHECK_THROWS_AS(fails_when_ready(), Error);
  CHECK(weight.pending_uses == 0);
  CHECK_FALSE(weight.has_gradient());
}

TEST_CASE("tape: a second backward without reset is refused; losses of constants too") {
  Tape tape;
  const Var x = tape.variable({1});
  x.value.data[0] = 1.0f;
  const Var y = relu(tape, x);
  tape.backward(y, [](Parameter&) {});
  CHECK_THROWS_AS(tape.backward(y, [](Parameter&) {}), Error);
  tape.reset();
  std::vector<float> logits{1.0f, 2.0f};
  const std::vector<std::int32_t> labels{0};
  const Var constant = tape.constant({logits.data(), {1, 2}});
  const Var loss = softmax_cross_entropy(tape, constant, labels);
  CHECK_THROWS_WITH_AS(tape.backward(loss, [](Parameter&) {}),
                       "Tape::backward: the loss does not depend on any parameter", Error);
  const Var squared = mean_squared_error(tape, constant, constant.value);
  CHECK_THROWS_AS(tape.backward(squared, [](Parameter&) {}), Error);
}

TEST_CASE("tape: a loss that is no scalar, or depends on nothing, is refused") {
  Tape tape;
  CHECK_THROWS_AS(tape.backward(tape.variable({2}), [](Parameter&) {}), Error);
  float value = 1.0f;
  CHECK_THROWS_AS(tape.backward(tape.constant({&value, {1}}), [](Parameter&) {}), Error);
  Parameter weight = make_parameter("w", Role::kWeight, {3, 3}, {});
  const Var loss = asymmetric_scalar(tape, linear(tape, tape.variable({2, 3}), weight));
  CHECK_THROWS_WITH_AS(tape.backward(loss),
                       "Tape::backward: parameter 'w' does not keep its gradient; call "
                       "keep_gradients() or pass on_ready",
                       Error);
}

TEST_CASE("tape: NaN is not hidden by an activation or a ternary reading") {
  Tape tape;
  Var x = tape.variable({1, 2});
  x.value.data[0] = std::nanf("");
  x.value.data[1] = -1.0f;
  const Var y = relu(tape, x);
  CHECK(std::isnan(y.value.data[0]));
  CHECK(y.value.data[1] == 0.0f);
  FormatSpec format;
  format.kind = FormatKind::kTernaryMaster;
  Parameter weight = make_parameter("w", Role::kWeight, {1, 3}, format);
  encode_all(weight.storage(), {0.5f, std::nanf(""), -0.5f});
  bool hidden = true;
  for (double v : decoded(weight.storage())) hidden = hidden && std::isfinite(v);
  CHECK_FALSE(hidden);
}

}  // namespace tritgrad::test::test_tape
