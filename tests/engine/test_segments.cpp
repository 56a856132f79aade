// Segments of a tape, which backward computes again; and values that are given back at inference.
#include <functional>
#include <string>
#include <vector>

#include "engine/tape.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/bias.h"
#include "ops/layer_norm.h"
#include "ops/loss.h"
#include "ops/products/linear.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_segments {
namespace {

constexpr std::int64_t kRows = 64, kWidth = 64;
constexpr std::int64_t kTensor = kRows * kWidth * 4;
// Notes, closures and factors of rows: less than this for each op.
constexpr std::int64_t kSmall = 2048;

// A chain of residual blocks: x + tanh(linear(rms_norm(x))).
struct Blocks {
  std::deque<Parameter> gains, weights;

  explicit Blocks(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      const auto seed = static_cast<std::uint64_t>(i);
      gains.push_back(make_parameter("gain" + number, Role::kNorm, {kWidth}, {}, 0.7f, seed));
      weights.push_back(
          make_parameter("weight" + number, Role::kWeight, {kWidth, kWidth}, {}, 0.2f, seed));
    }
  }

  Var block(Tape& tape, std::size_t i, const Var& x) {
    const Var norm = rms_norm(tape, x, gains[i]);
    const Var product = linear(tape, norm, weights[i]);
    tape.release(norm);
    const Var change = tanh(tape, product);
    tape.release(product);
    const Var y = add(tape, x, change);
    tape.release(change);
    return y;
  }
};

Var input(Tape& tape, std::int64_t rows = kRows) {
  const Var x = tape.variable({rows, kWidth});
  for (std::int64_t i = 0; i < x.value.size(); ++i) {
    x.value.data[i] = random_normal({3, 1, 4}, static_cast<std::uint64_t>(i));
  }
  return x;
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

// What a step leaves: the value of the loss, gradients in the order in which they are ready, and
// their names.
struct Outcome {
  std::vector<std::vector<float>> numbers;
  std::vector<std::string> names;
  bool operator==(const Outcome&) const = default;
};

// `forward` makes y of x.
Outcome step(const std::function<Var(Tape&, const Var&)>& forward) {
  Outcome outcome;
  Tape tape;
  const Var x = input(tape);
  const Var loss = asymmetric_scalar(tape, forward(tape, x));
  outcome.numbers.push_back(values_of(loss.value));
  tape.backward(loss, [&](Parameter& p) {
    outcome.names.push_back(p.name());
    outcome.numbers.push_back(values_of(p.grad));
    CHECK(p.pending_uses == 0);
  });
  outcome.numbers.push_back(values_of(x.grad()));
  return outcome;
}

}  // namespace

TEST_CASE("segments: gradients are those without, bit for bit, and are ready in the same order") {
  Blocks blocks(3);
  const auto plain = [&](Tape& tape, Var h) {
    for (std::size_t i = 0; i < 3; ++i) h = blocks.block(tape, i, h);
    return h;
  };
  const auto in_segments = [&](Tape& tape, Var h) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Var x = h;
      h = tape.segment(x, [&blocks, &tape, i](const Var& v) { return blocks.block(tape, i, v); });
      if (i > 0) tape.release(x);  // that of the first is looked at below
    }
    return h;
  };
  const auto as_one = [&](Tape& tape, const Var& x) {
    return tape.segment(x, [&blocks, &tape](const Var& v) {
      const auto block = [&blocks, &tape](std::size_t i, const Var& of) {
        return tape.segment(of,
                            [&blocks, &tape, i](const Var& w) { return blocks.block(tape, i, w); });
      };
      return block(2, block(1, blocks.block(tape, 0, v)));
    });
  };
  const Outcome expected = step(plain);
  CHECK(expected.names.size() == 6);
  CHECK(step(in_segments) == expected);
  CHECK(step(as_one) == expected);
}

TEST_CASE("segments: an input that others read, too, gets all shares in the same order") {
  Blocks blocks(2);
  const auto graph = [&](bool segments) {
    return [&blocks, segments](Tape& tape, const Var& x) {
      const auto block = [&blocks, &tape](const Var& v) { return blocks.block(tape, 0, v); };
      const Var a = relu(tape, x);
      const Var b = segments ? tape.segment(x, block) : block(x);
      const Var c = blocks.block(tape, 1, x);
      return add(tape, a, add(tape, b, c));
    };
  };
  CHECK(step(graph(true)) == step(graph(false)));
}

TEST_CASE("segments: a parameter that is used outside, too, is ready once, after its last use") {
  Blocks blocks(1);
  Parameter bias = make_parameter("bias", Role::kBias, {kWidth}, {}, 0.5f);
  const auto graph = [&](bool segments) {
    return [&blocks, &bias, segments](Tape& tape, const Var& x) {
      const auto block = [&blocks, &bias, &tape](const Var& v) {
        return add_bias(tape, blocks.block(tape, 0, v), bias);
      };
      return add_bias(tape, segments ? tape.segment(x, block) : block(x), bias);
    };
  };
  const Outcome expected = step(graph(false));
  CHECK(expected.names == std::vector<std::string>{"bias", "weight0", "gain0"});
  CHECK(step(graph(true)) == expected);
}

TEST_CASE("segments: a step keeps what each begins with, and the rest of one alone") {
  const auto bytes_of = [&](int count, bool segments) {
    Blocks blocks(count);
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape tape;
    Var h = input(tape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto block = [&blocks, &tape, i](const Var& v) { return blocks.block(tape, i, v); };
      const Var y = segments ? tape.segment(h, block) : block(h);
      tape.release(std::exchange(h, y));
    }
    tape.backward(asymmetric_scalar(tape, h), [](Parameter&) {});
    tape.reset();  // joins the memory to what is really needed
    return ledger::live(Category::kActivations) - before;
  };
  // A block keeps its norm, which the product reads, tanh, and the sum; in a segment, the sum.
  const std::int64_t plain = bytes_of(9, false) - bytes_of(4, false);
  CHECK(plain >= 5 * 3 * kTensor);
  const std::int64_t segmented = bytes_of(9, true) - bytes_of(4, true);
  CHECK(segmented >= 5 * kTensor);
  CHECK(segmented < 5 * (kTensor + kSmall));
}

TEST_CASE("segments: a warm step asks for no memory") {
  Blocks blocks(3);
  Tape tape;
  std::int64_t live = 0;
  for (int time = 0; time < 4; ++time) {
    ledger::reset_peak();
    Var h = input(tape);
    for (std::size_t i = 0; i < 3; ++i) {
      h = tape.segment(h, [&blocks, &tape, i](const Var& v) { return blocks.block(tape, i, v); });
    }
    tape.backward(asymmetric_scalar(tape, h), [](Parameter&) {});
    tape.reset();
    if (time == 0) live = ledger::live_total();
    if (time > 0) CHECK(ledger::peak_total() == live);
  }
}

TEST_CASE("segments: one whose result has another shape is refused; an abandoned step is over") {
  Blocks blocks(1);
  Parameter narrow = make_parameter("narrow", Role::kWeight, {3, kWidth}, {});
  Tape tape;
  const auto shrink = [&](const Var& v) { return linear(tape, v, narrow); };
  CHECK_THROWS_WITH_AS(tape.segment(input(tape), shrink),
                       "Tape::segment: x has shape [64 x 64] and what is made of it [64 x 3]; "
                       "equal shapes are needed",
                       Error);
  CHECK(narrow.pending_uses == 1);
  tape.reset();
  CHECK(narrow.pending_uses == 0);
  CHECK(tape.recording());

  const auto block = [&](const Var& v) { return blocks.block(tape, 0, v); };
  const Var y = tape.segment(input(tape), block);
  CHECK(blocks.weights[0].pending_uses == 1);
  CHECK_THROWS_WITH_AS(tape.backward(asymmetric_scalar(tape, y)),
                       "Tape::backward: parameter 'gain0' does not keep its gradient; call "
                       "keep_gradients() or pass on_ready",
                       Error);
  tape.reset();
  CHECK(blocks.weights[0].pending_uses == 0);
}

TEST_CASE("segments: an error in backward gives back what was lent to parameters") {
  Blocks blocks(2);
  const auto fails_when_ready = [&] {
    Tape tape;
    Var h = input(tape);
    for (std::size_t i = 0; i < 2; ++i) {
      h = tape.segment(h, [&blocks, &tape, i](const Var& v) { return blocks.block(tape, i, v); });
    }
    tape.backward(asymmetric_scalar(tape, h), [](Parameter&) { fail("as an optimizer may"); });
  };
  for (int time = 0; time < 2; ++time) CHECK_THROWS_AS(fails_when_ready(), Error);
  for (const std::deque<Parameter>& all : {std::cref(blocks.gains), std::cref(blocks.weights)}) {
    for (const Parameter& parameter : all) {
      CHECK(parameter.pending_uses == 0);
      CHECK_FALSE(parameter.has_gradient());
    }
  }
}

TEST_CASE("inference: released values, and what segments made, serve what follows") {
  const auto bytes_of = [&](int count, bool segments) {
    Blocks blocks(count);
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape tape;
    tape.set_recording(false);
    Var h = input(tape);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto block = [&blocks, &tape, i](const Var& v) { return blocks.block(tape, i, v); };
      const Var y = segments ? tape.segment(h, block) : block(h);
      tape.release(std::exchange(h, y));
    }
    tape.reset();
    return ledger::live(Category::kActivations) - before;
  };
  for (const bool segments : {false, true}) {
    CAPTURE(segments);
    // x, the norm and the product, of which x and tanh are left for the sum; and y of a segment.
    CHECK(bytes_of(4, segments) < 4 * (kTensor + 4 * kSmall));
    CHECK(bytes_of(9, segments) - bytes_of(4, segments) < 5 * 4 * kSmall);
  }
}

TEST_CASE("inference: memory that an op took over is given back once, and a constant's never") {
  Tape tape;
  const Var x = input(tape);
  CHECK_THROWS_WITH_AS(tape.take_over(x),
                       "Tape::take_over: backward may need the value of shape [64 x 64]; make a "
                       "new one",
                       Error);
  tape.set_recording(false);
  const Var y = tape.take_over(x);
  CHECK(y.value.data == x.value.data);
  tape.release(x);
  CHECK(tape.variable(x.shape()).value.data != x.value.data);
  tape.release(y);
  CHECK(tape.variable(x.shape()).value.data == x.value.data);

  std::vector<float> row(kWidth, 1.0f);
  const Var constant = tape.constant({row.data(), {1, kWidth}});
  const Var same = tape.take_over(constant);
  CHECK(same.value.data == row.data());
  for (const Var& var : {constant, same}) tape.release(var);
  CHECK(tape.variable({1, kWidth}).value.data != row.data());
}

TEST_CASE("released gradients share memory, though one waits for its last use") {
  const std::int64_t before = ledger::live(Category::kGradients);
  Parameter bias = make_parameter("bias", Role::kBias, {kWidth}, {}, 0.5f);
  Blocks blocks(6);
  Tape tape;
  Var h = add_bias(tape, input(tape), bias);
  for (std::size_t i = 0; i < 6; ++i) h = blocks.block(tape, i, h);
  tape.backward(asymmetric_scalar(tape, add_bias(tape, h, bias)), [](Parameter&) {});
  tape.reset();
  // One matrix, and a bias and a gain beside it, in whole cache lines.
  CHECK(ledger::live(Category::kGradients) - before >= 4 * kWidth * kWidth);
  CHECK(ledger::live(Category::kGradients) - before < 4 * kWidth * (kWidth + 4) + 64 * 1024);
}

}  // namespace tritgrad::test::test_segments
