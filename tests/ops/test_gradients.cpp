// What becomes of gradients: kept in fp32 or bf16, added up over parts of a batch, released,
// clipped.
#include "engine/data/open_dataset.h"
#include "models/networks/model.h"
#include "models/training/train.h"
#include "ops/loss.h"
#include "ops/products/linear.h"
#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_gradients {
namespace {

constexpr const char* kModel = "mlp:20-16-4:norm=layer";

// Gradients of all weights of a small network on 12 rows, walked in `parts` parts.
std::vector<double> gradients(FormatKind format, std::int64_t parts) {
  const Recipe recipe = load_recipe("fp32");
  Tape tape;
  Recipe kept = recipe;
  kept.gradient_format = format;
  const auto chosen = make_model(kModel, 0, 0, kept, 3);
  std::vector<float> x = numbers(12 * 20, 5);
  const std::vector<std::int32_t> labels = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * 12 / parts, n = (part + 1) * 12 / parts - begin;
    const Var logits = chosen->forward(tape, {x.data() + begin * 20, {n, 20}}, {true, {}});
    const Var loss = softmax_cross_entropy(
        tape, logits,
        std::span(labels).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n)));
    tape.backward(loss, static_cast<float>(n) / 12.0f);
    tape.reset();
  }
  std::vector<double> all;
  for (const Parameter& parameter : chosen->parameters()) {
    if (!parameter.spec().trainable()) continue;
    std::vector<float> scratch(static_cast<std::size_t>(parameter.shape().size()));
    const float* grad = parameter.read_gradient(0, parameter.shape().size(), scratch.data());
    all.insert(all.end(), grad, grad + parameter.shape().size());
  }
  return all;
}

TrainOptions on_iris(const std::string& recipe, std::vector<std::string> overrides) {
  TrainOptions options;
  options.recipe = recipe;
  options.overrides = std::move(overrides);
  options.model = "mlp:16:norm=layer";
  options.epochs = 5;
  options.batch = 30;
  return options;
}

RunResult run(const TrainOptions& options) { return train(open_dataset("iris", {}), options); }

}  // namespace

TEST_CASE("gradients: parts of a batch add up to the whole") {
  const std::vector<double> whole = gradients(FormatKind::kFp32, 1);
  for (std::int64_t parts : {2, 3, 5, 12}) {
    const std::vector<double> sum = gradients(FormatKind::kFp32, parts);
    REQUIRE(sum.size() == whole.size());
    // Sums of 12 rows of terms of at most 1, in another order: 12 roundings each.
    for (std::size_t i = 0; i < sum.size(); ++i) {
      CHECK(std::abs(sum[i] - whole[i]) <= 12 * 2 * 0x1p-24);
    }
  }
}

TEST_CASE("gradients: bf16 keeps the nearest number, and one rounding more for every part") {
  const std::vector<double> exact = gradients(FormatKind::kFp32, 1);
  for (std::int64_t parts : {1, 3}) {
    const std::vector<double> kept = gradients(FormatKind::kBf16, parts);
    double largest = 0.0;
    for (double g : exact) largest = std::max(largest, std::abs(g));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      // 8 significant bits: half a unit is 2^-8 of the sum so far, which may exceed the result.
      const double bound = parts == 1 ? std::abs(exact[i]) * 0x1p-8 + 1e-12
                                      : static_cast<double>(parts) * largest * 0x1p-8;
      CHECK(std::abs(kept[i] - exact[i]) <= bound);
    }
  }
}

TEST_CASE("gradients: kept and released gradients end with the same bits, for every recipe") {
  for (const std::string& recipe : recipe_names()) {
    CAPTURE(recipe);
    // Released ones are fp32 always.
    CHECK(run(on_iris(recipe, {"gradients=kept", "gradient_format=fp32"})).weights_sha256 ==
          run(on_iris(recipe, {"gradients=released"})).weights_sha256);
  }
}

// y = x, at which the gradient of `parameter` gets a number that is none.
Var spoil(Tape& tape, const Var& x, Parameter& parameter) {
  const Var y = tape.variable(x.shape());
  std::copy(x.value.values().begin(), x.value.values().end(), y.value.data);
  tape.record(y, {}, {&parameter}, [&tape, &parameter, x, y] {
    tape.gradient(parameter).data[1] = std::nanf("");
    const Tensor dx = tape.grad_to(x), dy = tape.grad_of(y);
    for (std::int64_t i = 0; i < dx.size(); ++i) dx.data[i] += dy.data[i];
  });
  return y;
}

// Three layers with released gradients, two steps, in the second of which the gradient of the
// middle one may be spoilt.
struct Released {
  explicit Released(NonFinite policy) {
    for (const char* name : {"first", "middle", "last"}) {
      store.add({name, Role::kWeight, {6, 6}, {}, {Initial::Kind::kUniform, 1.0f}}, 1);
    }
    optimizer = std::make_unique<Optimizer>(
        store, [](const ParameterSpec&) { return GroupSpec{}; }, 10, 1, policy);
    step(false);
  }

  // Returns what the refusal said.
  std::string step(bool spoilt) {
    tape.reset();
    Var x = tape.variable({4, 6});
    const std::vector<float> values = numbers(24, 3);
    std::copy(values.begin(), values.end(), x.value.data);
    for (Parameter& w : store) {
      if (spoilt && w.name() == "middle") x = spoil(tape, x, w);
      x = linear(tape, x, w);
    }
    try {
      tape.backward(asymmetric_scalar(tape, x), [&](Parameter& w) { optimizer->step(w); });
    } catch (const Error& error) {
      return error.what();
    }
    optimizer->advance();
    return {};
  }

  // Weights, moments and number of updates of one layer.
  std::vector<std::byte> layer(const std::string& name) {
    std::vector<std::byte> bytes = all_bytes(store.find(name).storage());
    for (const NamedArray& plane : optimizer->state()) {
      if (!plane.name.starts_with(name + "/")) continue;
      bytes.insert(bytes.end(), plane.bytes.begin(), plane.bytes.end());
    }
    return bytes;
  }

  ParameterStore store;
  Tape tape;
  std::unique_ptr<Optimizer> optimizer;
};

TEST_CASE("gradients: a released one that is not finite is named, and what lies above has moved") {
  Released before(NonFinite::kRefuse), healthy(NonFinite::kRefuse), refused(NonFinite::kRefuse);
  CHECK(healthy.step(false).empty());
  CHECK(refused.step(true) ==
        "step 2: the gradient of 'middle' is not finite; the parameter was not changed; lower the "
        "learning rate, or set non_finite = \"skip\" to leave such updates out");
  CHECK(refused.layer("last") == healthy.layer("last"));
  CHECK(refused.layer("last") != before.layer("last"));
  CHECK(refused.layer("middle") == before.layer("middle"));
  CHECK(refused.layer("first") == before.layer("first"));
  CHECK(refused.optimizer->steps_done() == 1);

  // Skipped, it alone stays as it was: gradients of the others are those of the healthy step.
  Released skipped(NonFinite::kSkip);
  CHECK(skipped.step(true).empty());
  CHECK(skipped.optimizer->skipped_updates() == 1);
  CHECK(skipped.layer("last") == healthy.layer("last"));
  CHECK(skipped.layer("middle") == before.layer("middle"));
  CHECK(skipped.layer("first") == healthy.layer("first"));
  CHECK(skipped.layer("first") != before.layer("first"));
}

TEST_CASE("gradients: micro-batches train like the whole batch, and need kept gradients") {
  TrainOptions options = on_iris("fp32", {});
  const RunResult whole = run(options);
  options.micro_batches = 5;
  const RunResult parts = run(options);
  CHECK(parts.steps == whole.steps);
  // Sums of floats in another order. (Measured: 3e-8; a run grows apart as it likes, so 300 times
  // as much may come of other roundings.)
  CHECK(parts.train_loss == doctest::Approx(whole.train_loss).epsilon(1e-5));
  options.overrides = {"gradient_format=bf16"};
  // Gradients off by 2^-9 of themselves, now up, now down. (Measured: 1.4e-5, 70 times less.)
  CHECK(run(options).train_loss == doctest::Approx(whole.train_loss).epsilon(1e-3));

  options.micro_batches = 16;
  CHECK(contains(refusal([&] { run(options); }),
                 "--micro-batches 16: a batch of 30 rows has at most 15 parts of two rows"));

  options = on_iris("votes", {});
  options.micro_batches = 4;
  CHECK(contains(refusal([&] { run(options); }),
                 "--micro-batches 4: recipe 'votes' releases each gradient"));
  options.overrides = {"gradients=kept"};
  CHECK(run(options).steps == whole.steps);
}

TEST_CASE("gradients: what contradicts itself is refused with a sentence") {
  CHECK(contains(refusal([] { load_recipe("votes", {"clip_grad_norm=1"}); }),
                 "clip_grad_norm needs all gradients at once"));
  CHECK(contains(refusal([] { load_recipe("votes", {"gradient_format=bf16"}); }),
                 "gradient_format is about kept gradients"));
  CHECK(contains(refusal([] { load_recipe("fp32", {"gradient_format=int8"}); }),
                 "unknown value 'int8'"));
  CHECK(contains(refusal([] { load_recipe("fp32", {"weight.clip_value=-1"}); }),
                 "clip_value = -1 is outside"));
}

TEST_CASE("gradients: elements are clipped to the value asked for") {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  group.lr = 1.0;
  group.clip_value = 0.25;
  Single single({3}, {}, group);
  const std::vector<double> before = decoded(single.w().storage());
  single.step({0.125f, -3.0f, 7.0f});
  const std::vector<double> after = decoded(single.w().storage());
  // w is below 1: a difference rounds by 2^-24 at most.
  CHECK(std::abs(before[0] - after[0] - 0.125) <= 0x1p-23);
  CHECK(std::abs(before[1] - after[1] + 0.25) <= 0x1p-23);
  CHECK(std::abs(before[2] - after[2] - 0.25) <= 0x1p-23);
}

}  // namespace tritgrad::test::test_gradients
