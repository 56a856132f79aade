// What backward says of the size of a gradient, so that nobody has to look through it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/tape.h"
#include "ops/products/linear.h"
#include "tests/support/single.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_gradient_bound {
namespace {

constexpr std::int64_t kRows = 9, kInputs = 330, kOutputs = 21;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Backward of a linear layer of `rows` rows from dL/dy = dy.
template <typename OnReady>
void backward_linear(const std::vector<float>& x, const std::vector<float>& dy, std::int64_t rows,
                     Parameter& weight, Parameter* scale, Compute compute, OnReady&& on_ready) {
  Tape tape;
  const Tensor input = tape.tensor({rows, kInputs});
  std::copy(x.begin(), x.end(), input.data);
  const Var y = linear(tape, tape.constant(input), weight, scale, compute);
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {}, [&tape, y, from = dy.data(), n = dy.size()] {
    std::copy_n(from, n, tape.target(y).grad.data);
  });
  tape.backward(loss, on_ready);
}

// A weight of some format, its scale and an input, all with numbers of their own.
struct Layer {
  Parameter weight;
  Parameter scale = make_parameter("scale", Role::kScale, {kOutputs, 1}, {}, 0.3f);
  bool scaled;
  std::vector<float> x = numbers(kRows * kInputs, 5);
  std::vector<float> dy = numbers(kRows * kOutputs, 6);
  Compute compute = Compute::kFp32;

  explicit Layer(FormatKind kind)
      : weight(make_parameter("w", Role::kWeight, {kOutputs, kInputs}, format(kind))),
        scaled(kind != FormatKind::kFp32) {}

  template <typename OnReady>
  void backward(OnReady&& on_ready) {
    backward_linear(x, dy, kRows, weight, scaled ? &scale : nullptr, compute, on_ready);
  }
  void backward() {
    backward([](Parameter&) {});
  }
  bool known() const { return weight.gradient_is_known_finite(); }
  float largest() const {
    float most = 0.0f;
    for (float g : weight.grad.values()) most = std::max(most, std::abs(g));
    return most;
  }
};

}  // namespace

TEST_CASE("gradient bound: no gradient is beyond it, and it is no wild guess") {
  struct Case {
    FormatKind kind;
    Compute compute;
  };
  for (const Case& c :
       {Case{FormatKind::kFp32, Compute::kFp32}, Case{FormatKind::kLatent8, Compute::kFp32},
        Case{FormatKind::kLatent8, Compute::kInt8}, Case{FormatKind::kTernary, Compute::kInt8}}) {
    CAPTURE(format_name(c.kind));
    CAPTURE(static_cast<int>(c.compute));
    Layer layer(c.kind);
    layer.compute = c.compute;
    layer.weight.keep_gradient();
    CHECK(!layer.known());
    layer.backward();
    CHECK(layer.known());
    const double bound = layer.weight.gradient_bound();
    CHECK(double{layer.largest()} <= bound);
    // Of 9 products between 189 and 2970 go into the two lengths, and rows differ in their scale.
    CHECK(bound < 1000.0 * double{layer.largest()});
    layer.backward();
    CHECK(layer.known());
    CHECK(layer.weight.gradient_bound() == 2.0 * bound);
    layer.weight.zero_gradient();
    CHECK(!layer.known());
  }
}

TEST_CASE("gradient bound: what may not be finite is not said to be") {
  for (const FormatKind kind : {FormatKind::kFp32, FormatKind::kLatent8}) {
    CAPTURE(format_name(kind));
    Layer layer(kind);
    layer.weight.keep_gradient();
    for (const float bad : {kInfinity, -kInfinity, std::nanf(""), 3e38f}) {
      CAPTURE(bad);
      for (std::vector<float>* at : {&layer.x, &layer.dy}) {
        const float good = std::exchange(at->at(17), bad);
        layer.backward();
        CHECK(!layer.known());
        at->at(17) = good;
        // What was added to something that is not finite leaves it so.
        layer.backward();
        CHECK(!layer.known());
        layer.weight.zero_gradient();
        layer.backward();
        CHECK(layer.known());
        layer.weight.zero_gradient();
      }
    }
    layer.compute = Compute::kInt8;
    layer.dy[17] = std::nanf("");
    layer.backward();
    CHECK(!layer.known());
  }
}

// dW is a float before it is scaled.
TEST_CASE("gradient bound: a small scale does not hide what overflowed before") {
  for (const float scale : {1e-3f, 0.0f}) {
    Layer layer(FormatKind::kLatent8);
    layer.weight.keep_gradient();
    std::fill_n(layer.scale.storage().fp32_data(), kOutputs, scale);
    const std::vector<float> x = layer.x, dy = layer.dy;
    std::fill(layer.x.begin(), layer.x.end(), 1e20f);
    std::fill(layer.dy.begin(), layer.dy.end(), 1e19f);
    layer.backward();
    CHECK(!layer.weight.gradient_is_finite(0, layer.weight.shape().size()));
    CHECK(!layer.known());
    layer.x = x;
    layer.dy = dy;
    layer.backward();
    CHECK(!layer.known());
  }
}

TEST_CASE("gradient bound: groups of a row, and what a layer with few weights does not ask for") {
  Layer layer(FormatKind::kFp32);
  FormatSpec spec = format(FormatKind::kLatent8);
  spec.group = 64;
  Parameter weight = make_parameter("w", Role::kWeight, {kOutputs, kInputs}, spec);
  Parameter scale = make_parameter("scale", Role::kScale, {kOutputs, 6}, {}, 0.3f);
  for (const Compute compute : {Compute::kFp32, Compute::kInt8}) {
    CAPTURE(static_cast<int>(compute));
    weight.keep_gradient();
    weight.zero_gradient();
    backward_linear(layer.x, layer.dy, kRows, weight, &scale, compute, [](Parameter&) {});
    CHECK(weight.gradient_is_known_finite());
    for (const float g : weight.grad.values()) {
      REQUIRE(std::abs(double{g}) <= weight.gradient_bound());
    }
  }
  // 20 rows have 7020 numbers, the weight 6930.
  const std::vector<float> x = numbers(20 * kInputs, 5), dy = numbers(20 * kOutputs, 6);
  Parameter plain = make_parameter("w", Role::kWeight, {kOutputs, kInputs}, {});
  plain.keep_gradient();
  backward_linear(x, dy, 20, plain, nullptr, Compute::kFp32, [](Parameter&) {});
  CHECK(!plain.gradient_is_known_finite());
}

TEST_CASE("gradient bound: parts that are finite may have a sum that is not") {
  Layer layer(FormatKind::kFp32);
  layer.weight.keep_gradient();
  std::fill(layer.x.begin(), layer.x.end(), 1e12f);
  std::fill(layer.dy.begin(), layer.dy.end(), 0.0f);
  layer.dy[3] = 1e21f;  // the lengths: 1e12 sqrt(9 330) and 1e21
  layer.backward();
  CHECK(layer.weight.gradient_bound() == doctest::Approx(1e33 * std::sqrt(2970.0)));
  CHECK(layer.known());
  for (int part = 1; part < 7; ++part) layer.backward();  // 3.8e35, beyond 2^128 / 1024
  CHECK(!layer.known());
  CHECK(layer.weight.gradient_is_finite(0, layer.weight.shape().size()));
}

TEST_CASE("gradient bound: unknown where others write, or one of the uses says nothing") {
  Layer layer(FormatKind::kFp32);
  layer.weight.keep_gradient();
  layer.backward();
  Tape tape;
  tape.gradient(layer.weight);
  CHECK(!layer.known());
  layer.weight.zero_gradient();
  layer.backward();
  CHECK(layer.known());
  layer.weight.share_gradient();
  CHECK(!layer.known());

  // Sums in bf16 may be further from the exact ones than the bound allows for.
  Layer coarse(FormatKind::kFp32);
  coarse.weight.keep_gradient(FormatKind::kBf16);
  coarse.weight.add_to_gradient_bound(1.0);
  CHECK(!coarse.known());
}

TEST_CASE("gradient bound: of a gradient that is released, each backward tells its own") {
  Layer layer(FormatKind::kLatent8);
  std::vector<bool> known;
  const auto backward = [&] {
    layer.backward([&](Parameter& parameter) {
      if (&parameter == &layer.weight) known.push_back(layer.known());
    });
  };
  backward();
  const float good = std::exchange(layer.dy[3], kInfinity);
  backward();
  layer.dy[3] = good;
  backward();
  CHECK(known == std::vector<bool>{true, false, true});
}

TEST_CASE("gradient bound: an update takes a gradient that is not finite for what it is") {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  Single single({4, 6}, {}, group, 10, NonFinite::kSkip);
  const std::vector<double> before = decoded(single.w().storage());
  Tape tape;
  single.w().add_to_gradient_bound(1.0);          // by one op
  const Tensor grad = tape.gradient(single.w());  // by another, which says nothing of its size
  grad.fill(1.0f);
  grad.data[7] = std::nanf("");
  single.optimizer->step();
  single.optimizer->advance();
  CHECK(single.optimizer->skipped_updates() == 1);
  CHECK(decoded(single.w().storage()) == before);
}

}  // namespace tritgrad::test::test_gradient_bound
