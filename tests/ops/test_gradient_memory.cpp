// Memory of gradients and values: made when first needed, handed down, used again.
#include <utility>

#include "engine/memory/parallel.h"
#include "engine/tape.h"
#include "ops/activation.h"
#include "ops/batch_norm.h"
#include "ops/bias.h"
#include "ops/conv2d.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/loss.h"
#include "ops/products/linear.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_gradient_memory {
namespace {

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kFeatures = 5;

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

struct NormParameters {
  Parameter gain = make_parameter("gain", Role::kNorm, {kFeatures}, {}, 0.7f);
  Parameter bias = make_parameter("bias", Role::kNorm, {kFeatures}, {}, 0.4f);
  Parameter mean = make_parameter("mean", Role::kStatistic, {kFeatures}, {}, 0.1f);
  Parameter variance = make_parameter("variance", Role::kStatistic, {kFeatures}, {}, 0.2f);

  NormParameters() {
    for (float& v : std::span(variance.storage().fp32_data(), kFeatures)) v = 1.0f + v * v;
  }
  BatchNormParameters all() { return {&gain, &bias, &mean, &variance}; }
};

Var input(Tape& tape) {
  const Var x = tape.variable({kRows, kFeatures});
  for (std::int64_t i = 0; i < x.value.size(); ++i) {
    x.value.data[i] = random_normal({3, 1, 4}, static_cast<std::uint64_t>(i));
  }
  return x;
}

// y = x, whose backward step looks at the values in `reads`, or says so.
Var copy(Tape& tape, const Var& x, std::initializer_list<Var> reads = {}) {
  const Var y = tape.variable(x.shape());
  std::copy(x.value.values().begin(), x.value.values().end(), y.value.data);
  tape.record(y, reads, {}, [&tape, x, y] { tape.target_in_place(x, y); });
  return y;
}

// y, then gradients of x, gain and bias.
using Numbers = std::vector<std::vector<float>>;
Numbers normalize(bool fused) {
  NormParameters norm;
  Tape tape;
  const Var x = input(tape);
  const Var y = fused ? batch_norm(tape, x, norm.all(), Rectify::kYes)
                      : relu(tape, batch_norm(tape, x, norm.all()));
  Numbers numbers(4);
  numbers[0] = values_of(y.value);
  tape.backward(asymmetric_scalar(tape, y),
                [&](Parameter& p) { numbers[&p == &norm.gain ? 2 : 3] = values_of(p.grad); });
  numbers[1] = values_of(x.grad());
  return numbers;
}

}  // namespace

TEST_CASE("gradient memory: a rectifier inside batch norm equals the one behind it, bit for bit") {
  const Numbers fused = normalize(true);
  CHECK(fused == normalize(false));
  for (const std::vector<float>& numbers : fused) CHECK(!numbers.empty());

  NormParameters norm;
  Tape tape;
  const Var x = input(tape);
  CHECK(values_of(batch_norm_inference(tape, x, norm.all(), Rectify::kYes).value) ==
        values_of(relu(tape, batch_norm_inference(tape, x, norm.all())).value));
}

TEST_CASE("gradient memory: inference that is not recorded takes no memory, and gives the same") {
  NormParameters norm;
  Tape tape;
  const Var x = input(tape);
  for (Rectify rectify : {Rectify::kNo, Rectify::kYes}) {
    const Var before = tape.variable(x.shape());
    std::copy(x.value.values().begin(), x.value.values().end(), before.value.data);
    const std::vector<float> recorded =
        values_of(batch_norm_inference(tape, before, norm.all(), rectify).value);
    CHECK(values_of(before.value) == values_of(x.value));
    tape.set_recording(false);
    const Var y = batch_norm_inference(tape, before, norm.all(), rectify);
    tape.set_recording(true);
    CHECK(y.value.data == before.value.data);
    CHECK(values_of(y.value) == recorded);
  }
}

TEST_CASE("gradient memory: batch norm of many rows, whose sums are those of tiles") {
  // Columns of 9000 rows are two equal halves and a rest, tiles of 4096: mean and variance follow.
  constexpr std::int64_t kMany = 9000;
  NormParameters norm;
  const auto outputs = [&](int threads) {
    set_thread_count(threads);
    Tape tape;
    const Var x = tape.variable({kMany, kFeatures});
    for (std::int64_t i = 0; i < x.value.size(); ++i) {
      x.value.data[i] = i / kFeatures % 2 == 0 ? 3.0f : -1.0f;
    }
    const Var y = batch_norm(tape, x, norm.all());
    std::vector<float> all = values_of(y.value);
    tape.backward(asymmetric_scalar(tape, y), [&](Parameter& p) {
      const std::vector<float> grad = values_of(p.grad);
      all.insert(all.end(), grad.begin(), grad.end());
    });
    const std::vector<float> dx = values_of(x.grad());
    all.insert(all.end(), dx.begin(), dx.end());
    return all;
  };
  const std::vector<float> one = outputs(1);
  CHECK(outputs(3) == one);
  set_thread_count(0);
  const std::vector<double> gain = decoded(norm.gain.storage());
  const std::vector<double> bias = decoded(norm.bias.storage());
  // Mean 1, variance 4: (3 - 1) / 2, a few roundings of numbers below 2.
  const double z = 2.0 / std::sqrt(4.0 + static_cast<double>(kBatchNormEps));
  for (std::int64_t row : {0, 1, 4095, 4096, 8999}) {
    for (std::size_t j = 0; j < kFeatures; ++j) {
      const double expected = gain[j] * (row % 2 == 0 ? z : -z) + bias[j];
      const double y = double{one[static_cast<std::size_t>(row * kFeatures) + j]};
      CHECK(std::abs(y - expected) <= 8 * 0x1p-24);
    }
  }
  // d bias, after y: the sum of dL/dy over all rows, in double but for its last rounding.
  std::vector<double> dbias(kFeatures), magnitude(kFeatures);
  for (std::size_t i = 0; i < kMany * kFeatures; ++i) {
    const double dy = coefficient(i, 1) + coefficient(i, 2) * double{one[i]};
    dbias[i % kFeatures] += dy;
    magnitude[i % kFeatures] += std::abs(dy);
  }
  for (std::size_t j = 0; j < kFeatures; ++j) {
    const std::size_t at = kMany * kFeatures + kFeatures + j;  // gain's is first
    CHECK(std::abs(double{one[at]} - dbias[j]) <= 4 * 0x1p-24 * magnitude[j]);
  }
}

TEST_CASE("gradient memory: what is used twice gets both shares, whichever op comes first") {
  NormParameters norm;
  using Op = std::function<Var(Tape&, const Var&)>;
  const std::vector<Op> ops = {
      [](Tape& t, const Var& x) { return relu(t, x); },
      [](Tape& t, const Var& x) { return squared_relu(t, x); },
      [](Tape& t, const Var& x) { return tanh(t, x); },
      [&](Tape& t, const Var& x) { return batch_norm(t, x, norm.all(), Rectify::kYes); },
      [&](Tape& t, const Var& x) { return layer_norm(t, x, norm.gain, norm.bias); },
      [&](Tape& t, const Var& x) { return rms_norm(t, x, norm.gain); },
      [&](Tape& t, const Var& x) { return add_bias(t, x, norm.bias); },
      [](Tape& t, const Var& x) {
        return dropout(t, x, 0.4f, {5, 6, 7});
      },
  };
  // dL/dx where L is the sum of what is made of the chosen ops of one x.
  const auto gradient = [&](const std::vector<const Op*>& chosen) {
    Tape tape;
    const Var x = input(tape);
    const Var loss = tape.variable({1});
    std::vector<Var> outputs;
    for (const Op* op : chosen) outputs.push_back((*op)(tape, x));
    tape.record(loss, {}, {}, [&] {
      for (const Var& y : outputs) tape.grad_to(y).fill(1.0f);
    });
    // The loss must be the last node, and ops of the same x must come before it.
    tape.backward(loss, [](Parameter&) {});
    return values_of(x.grad());
  };
  for (const Op& a : ops) {
    for (const Op& b : ops) {
      const std::vector<float> one = gradient({&a}), other = gradient({&b});
      std::vector<float> sum(one.size());
      // Backward begins with the last.
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = other[i] + one[i];
      CHECK(gradient({&a, &b}) == sum);
    }
  }
}

TEST_CASE("gradient memory: an input of two integer layers gets both shares") {
  constexpr std::int64_t kInputs = 70, kOutputs = 9;  // more columns than a panel has
  Parameter one = make_parameter("one", Role::kWeight, {kOutputs, kInputs},
                                 spec_of(FormatKind::kTrits), 1.5f, 1);
  Parameter other = make_parameter("other", Role::kWeight, {kOutputs, kInputs},
                                   spec_of(FormatKind::kTrits), 1.5f, 2);
  Parameter scale =
      make_parameter("scale", Role::kScale, {kOutputs, 1}, spec_of(FormatKind::kFp32));
  encode_all(scale.storage(), std::vector<float>(kOutputs, 0.5f));
  // Rows of unlike size, so that each has a scale of its own in int8.
  std::vector<float> dy = numbers(kRows * kOutputs, 3);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t row = i / kOutputs;
    dy[i] *= static_cast<float>(1 + row);
  }
  const auto gradient = [&](const std::vector<Parameter*>& weights) {
    Tape tape;
    const Var x = tape.variable({kRows, kInputs});
    const std::vector<float> values = numbers(kRows * kInputs, 4);
    std::copy(values.begin(), values.end(), x.value.data);
    std::vector<Var> outputs;
    for (Parameter* weight : weights) {
      outputs.push_back(linear(tape, x, *weight, &scale, Compute::kInt8));
    }
    const Var loss = tape.variable({1});
    tape.record(loss, {}, {}, [&] {
      for (const Var& y : outputs) std::copy(dy.begin(), dy.end(), tape.target(y).grad.data);
    });
    tape.backward(loss, [](Parameter&) {});
    return values_of(x.grad());
  };
  const std::vector<float> first = gradient({&one}), second = gradient({&other});
  CHECK(first != second);
  std::vector<float> sum(first.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = second[i] + first[i];
  CHECK(gradient({&one, &other}) == sum);
}

TEST_CASE("gradient memory: a chain of ops needs the memory of one gradient") {
  Tape tape;
  const auto bytes_of_chain = [&](int length) {
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape chain;
    Var y = chain.variable({64, 64});
    y.value.fill(1.0f);
    for (int i = 0; i < length; ++i) y = relu(chain, y);
    std::vector<float> target(64 * 64, 0.5f);
    chain.backward(mean_squared_error(chain, y, {target.data(), {64, 64}}), [](Parameter&) {});
    chain.reset();  // joins the memory to what is really needed
    return ledger::live(Category::kActivations) - before;
  };
  constexpr std::int64_t kTensor = 64 * 64 * 4;
  const std::int64_t more = bytes_of_chain(20) - bytes_of_chain(10);
  CHECK(more >= 10 * kTensor);
  CHECK(more < 11 * kTensor);  // ten values, and no gradient more
}

TEST_CASE("gradient memory: a released value gives its memory to what follows, unless it is read") {
  Tape tape;
  const Var a = input(tape);
  const Var b = copy(tape, a);
  tape.release(a);
  const Var c = copy(tape, b);
  CHECK(c.value.data == a.value.data);
  const Var d = copy(tape, c, {c});
  tape.release(c);
  const Var e = copy(tape, d);
  CHECK(e.value.data != c.value.data);
  tape.release(d);
  CHECK(tape.grad_to(e).data == d.value.data);  // gradients take it, too

  CHECK_THROWS_WITH_AS(tape.release(a),
                       "Tape::release: this value of shape [8 x 5] was released already", Error);
  CHECK_THROWS_WITH_AS(
      copy(tape, e, {a}),
      "Tape::record: a value of shape [8 x 5] is to be read in backward, but was released", Error);
  float number = 1.0f;
  const Var constant = tape.constant({&number, {1}});
  for (int time = 0; time < 2; ++time) tape.release(constant);  // it is the caller's
  CHECK(number == 1.0f);
}

TEST_CASE("gradient memory: integer products read no value that they have not asked for") {
  const ImageShape image{2, 2, 3};
  FormatSpec trits;
  trits.kind = FormatKind::kTrits;
  Parameter weight = make_parameter("w", Role::kWeight, {kFeatures, 27}, trits, 1.5f, 1);
  Parameter scale = make_parameter("s", Role::kScale, {kFeatures, 1}, {}, 0.5f, 2);
  using Op = std::function<Var(Tape&, const Var&)>;
  const Op dense = [&](Tape& tape, const Var& x) {
    return linear(tape, x, weight, &scale, Compute::kInt8);
  };
  const Op convolution = [&](Tape& tape, const Var& x) {
    return conv2d(tape, x, image, {3}, weight, &scale, Compute::kInt8);
  };
  // Gradients of x, weight and scale.
  const auto gradients = [&](const Op& op, std::int64_t cols, bool spoilt) {
    Tape tape;
    const Var x = tape.variable({kRows, cols});
    const std::vector<float> values = numbers(kRows * cols, 4);
    std::copy(values.begin(), values.end(), x.value.data);
    const Var y = op(tape, x);
    const Var loss = asymmetric_scalar(tape, y);
    for (const Var& value : {x, y}) {
      if (spoilt && !value.note->is_read) value.value.fill(std::nanf(""));
    }
    Numbers all;
    tape.backward(loss, [&](Parameter& p) {
      std::vector<float>& dp = all.emplace_back(static_cast<std::size_t>(p.shape().size()));
      if (const LazyGradient* source = p.lazy_gradient) {
        source->read(source->context, 0, p.shape().rows(), 0, p.shape().cols(), dp.data(), {});
      } else {
        dp = values_of(p.grad);
      }
    });
    all.push_back(values_of(x.grad()));
    return all;
  };
  for (const auto& [op, cols] : {std::pair{dense, 27}, std::pair{convolution, 3}}) {
    const Numbers expected = gradients(op, cols, false);
    CHECK(expected.size() == 3);
    CHECK(gradients(op, cols, true) == expected);
  }
}

TEST_CASE("gradient memory: a chain whose values are released needs no more when it is longer") {
  const auto bytes_of_chain = [&](int length) {
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape tape;
    Var y = tape.variable({64, 64});
    y.value.fill(1.0f);
    for (int i = 0; i < length; ++i) {
      const Var next = copy(tape, y);
      tape.release(std::exchange(y, next));
    }
    CHECK(y.value.data[64 * 64 - 1] == 1.0f);
    tape.backward(asymmetric_scalar(tape, y), [](Parameter&) {});
    tape.reset();
    return ledger::live(Category::kActivations) - before;
  };
  CHECK(bytes_of_chain(20) - bytes_of_chain(10) < 64 * 64 * 4);
}

TEST_CASE("gradient memory: what is recycled is large enough, and in one use at a time") {
  // Widths up and down, so that blocks of other sizes wait. Two branches need gradients at once.
  const std::vector<std::int64_t> widths{5, 64, 48, 96, 10, 7};
  std::deque<Parameter> weights;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    weights.push_back(make_parameter("w" + std::to_string(i), Role::kWeight,
                                     {widths[i + 1], widths[i]}, {}, 0.1f));
  }
  // The same graph with a gradient of its own memory for every value, by hand.
  const auto gradients = [&](bool recycling) {
    Tape tape;
    Var x = input(tape);
    std::vector<Var> values{x};
    const auto keep = [&](const Var& v) {
      if (!recycling) tape.grad_to(v);
      values.push_back(v);
      return v;
    };
    if (!recycling) tape.grad_to(x);
    Var a = x;
    for (Parameter& w : weights) a = keep(linear(tape, a, w));
    Var b = x;
    for (Parameter& w : weights) b = keep(linear(tape, b, w));
    const Var loss = tape.variable({1});
    tape.record(loss, {}, {}, [&] {
      for (const Var& y : {a, b}) {
        const Tensor dy = tape.grad_to(y);
        for (std::int64_t i = 0; i < dy.size(); ++i) dy.data[i] += static_cast<float>(i % 7) - 3.0f;
      }
    });
    std::vector<std::vector<float>> all;
    tape.backward(loss, [&](Parameter& p) { all.push_back(values_of(p.grad)); });
    all.push_back(values_of(x.grad()));
    return all;
  };
  CHECK(gradients(true) == gradients(false));
}

TEST_CASE("gradient memory: an op whose result wants no gradient cannot be recorded") {
  Tape tape;
  const Var y = tape.variable({1}, false);
  CHECK_THROWS_AS(tape.record(y, {}, {}, [] {}), Error);
}

TEST_CASE("gradient memory: a result that nothing uses has a gradient of zero") {
  Tape tape;
  const Var x = input(tape);
  const Var unused = tanh(tape, x);
  const Var y = relu(tape, x);
  tape.backward(asymmetric_scalar(tape, y), [](Parameter&) {});
  Tape alone;
  const Var again = input(alone);
  alone.backward(asymmetric_scalar(alone, relu(alone, again)), [](Parameter&) {});
  CHECK(values_of(x.grad()) == values_of(again.grad()));
  CHECK(!unused.grad());
}

}  // namespace tritgrad::test::test_gradient_memory
