// SGD, Adam and AdamW against PyTorch's, whose values are in golden/optimizers.json (made by
// golden/optimizers.py).
//
// Both compute in fp32, but in different orders. The tolerance follows every element through both
// orders and adds up the worst that each rounding can do: see Rounded.
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "optim/optimizer.h"
#include "optim/rules/adam.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_golden_optimizers {
namespace {

constexpr std::size_t kElements = 12;
constexpr int kSteps = 100;
constexpr int kRecorded[] = {1, 2, 10, kSteps};

using Elements = std::array<float, kElements>;

// ---- the file

struct Case {
  std::string name;
  GroupSpec group;
  // PyTorch's own start: its momentum begins with the whole first gradient, undampened.
  bool whole_first_gradient = false;
  std::map<int, Elements> after;  // step -> PyTorch's parameter
};

RuleSpec read_rule(const nlohmann::json& json) {
  constexpr std::pair<const char*, double RuleSpec::*> kNumbers[] = {
      {"weight_decay", &RuleSpec::weight_decay},
      {"momentum", &RuleSpec::momentum},
      {"dampening", &RuleSpec::dampening},
      {"beta1", &RuleSpec::beta1},
      {"beta2", &RuleSpec::beta2},
      {"eps", &RuleSpec::eps}};
  RuleSpec spec;
  spec.kind = parse_rule(json.at("rule").get<std::string>());
  spec.nesterov = json.value("nesterov", false);
  for (const auto& [name, member] : kNumbers) spec.*member = json.value(name, spec.*member);
  return spec;
}

nlohmann::json read_file() {
  std::ifstream file(TRITGRAD_SOURCE_DIR "/tests/golden/optimizers.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

std::vector<Case> read_cases(const nlohmann::json& file) {
  std::vector<Case> cases;
  for (const nlohmann::json& json : file.at("cases")) {
    Case& made = cases.emplace_back();
    made.name = json.at("name").get<std::string>();
    made.group.rule = read_rule(json);
    made.group.lr = file.at("lr").get<double>();
    made.whole_first_gradient = json.value("momentum_start", "zero") == "gradient";
    for (int t : kRecorded) {
      made.after[t] = json.at("after").at(std::to_string(t)).get<Elements>();
    }
  }
  return cases;
}

// ---- initial values and gradients, as in golden/optimizers.py

struct Inputs {
  Elements initial;
  std::array<Elements, kSteps> gradients;

  Inputs() {
    for (float& x : initial) {
      x = next();
      x += x >= 0.0f ? 2.0f : -2.0f;
    }
    for (int t = 1; t <= kSteps; ++t) {
      Elements& g = gradients[static_cast<std::size_t>(t - 1)];
      for (float& x : g) x = next();
      g[7] = 0.0f;
      g[8] = 0x1p-20f;
      g[9] *= 1024.0f;
      g[10] = t % 2 == 1 ? 0.5f : -0.5f;
      if (t % 8 != 1) g[11] = 0.0f;
    }
  }
  const Elements& gradient(int t) const { return gradients[static_cast<std::size_t>(t - 1)]; }

 private:
  float next() {
    state_ = state_ * 1664525u + 1013904223u;
    return (static_cast<float>(state_ >> 21) - 1024.0f) / 1024.0f;
  }
  std::uint32_t state_ = 12345;
};

// ---- tolerances

// What fp32 arithmetic makes of a real number: off by `error` at the most. Every operation passes
// the errors of its operands on and adds its own rounding, half an ulp: 2^-24 of the result. (The
// double arithmetic of `value` itself is off by 2^-53, which is not counted.) Operations that are
// exact in fp32 too, with an exact 0 or 1, add nothing. A fused multiply-add rounds once less and
// stays within the bound.
struct Rounded {
  double value = 0.0;
  double error = 0.0;

  bool is(double x) const { return value == x && error == 0.0; }
};

Rounded round_once(double value, double error) {
  return {value, error + 0x1p-24 * (std::abs(value) + error)};
}
// A constant that each side rounds to fp32 by itself, after its own computation in double.
Rounded constant(double c) { return {c, std::abs(c - static_cast<double>(static_cast<float>(c)))}; }
// A constant that is the same fp32 number on both sides.
Rounded shared(double c) { return {static_cast<double>(static_cast<float>(c)), 0.0}; }

Rounded operator+(const Rounded& a, const Rounded& b) {
  if (a.is(0.0)) return b;
  if (b.is(0.0)) return a;
  return round_once(a.value + b.value, a.error + b.error);
}
Rounded operator-(const Rounded& a, const Rounded& b) { return a + Rounded{-b.value, b.error}; }
Rounded operator*(const Rounded& a, const Rounded& b) {
  if (a.is(0.0) || b.is(0.0)) return {};
  if (a.is(1.0)) return b;
  if (b.is(1.0)) return a;
  return round_once(a.value * b.value,
                    std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error);
}
Rounded operator/(const Rounded& a, const Rounded& b) {
  if (a.is(0.0)) return {};
  const double ratio = a.value / b.value;
  return round_once(ratio, (a.error + std::abs(ratio) * b.error) / (std::abs(b.value) - b.error));
}
// |sqrt(x) - sqrt(y)| = |x - y| / (sqrt(x) + sqrt(y)).
Rounded root(const Rounded& a) {
  if (a.is(0.0)) return {};
  return round_once(std::sqrt(a.value), a.error / std::sqrt(a.value));
}

enum class Order { kOurs, kTorch };

// One element, operation by operation.
struct Element {
  const Case* golden;
  Order order;
  Rounded w, m, v;

  const RuleSpec& spec() const { return golden->group.rule; }

  // Both sides in the same order: SGD adds, multiplies, and that is it.
  void sgd(const Rounded& g, int t) {
    if (spec().momentum == 0.0) {
      w = w - constant(golden->group.lr) * g;
      return;
    }
    const bool whole = order == Order::kTorch && golden->whole_first_gradient && t == 1;
    m = whole ? g : shared(spec().momentum) * m + shared(1.0 - spec().dampening) * g;
    const Rounded direction = spec().nesterov ? g + shared(spec().momentum) * m : m;
    w = w - constant(golden->group.lr) * direction;
  }

  // The moments in the same order, the step in two.
  void adam(const Rounded& g, double decoupled_decay, int t) {
    const double lr = golden->group.lr;
    const double bias1 = bias_correction(spec().beta1, t);
    const double bias2 = bias_correction(spec().beta2, t);
    m = shared(spec().beta1) * m + shared(1.0 - spec().beta1) * g;
    v = shared(spec().beta2) * v + shared(1.0 - spec().beta2) * g * g;
    if (order == Order::kOurs) {
      const Rounded size = root(v * constant(1.0 / bias2)) + shared(spec().eps);
      const Rounded direction = m * constant(1.0 / bias1) / size + constant(decoupled_decay) * w;
      w = w - constant(lr) * direction;
    } else {
      w = w * constant(1.0 - lr * decoupled_decay);
      const Rounded size = root(v) / constant(std::sqrt(bias2)) + shared(spec().eps);
      w = w - constant(lr / bias1) * m / size;
    }
  }

  void step(float gradient, int t) {
    const Rounded g{static_cast<double>(gradient)};
    const Rounded decayed = g + shared(spec().weight_decay) * w;
    if (spec().kind == RuleKind::kSgd) sgd(decayed, t);
    if (spec().kind == RuleKind::kAdam) adam(decayed, 0.0, t);
    if (spec().kind == RuleKind::kAdamw) adam(g, spec().weight_decay, t);
  }
};

// ---- runs and their comparison

// Copies of the elements side by side fill whole vectors of any instruction set and leave a rest.
constexpr std::size_t kCopies = 3;
using Trajectory = std::map<int, std::vector<float>>;  // step -> kCopies * kElements

Trajectory train(const GroupSpec& group, const Inputs& inputs) {
  ParameterStore store;
  store.add({"w", Role::kWeight, {kCopies * kElements}, {}, {}}, 1);
  store.keep_gradients();
  Optimizer optimizer(
      store, [&](const ParameterSpec&) { return group; }, kSteps, 1);
  Parameter& parameter = store.find("w");
  const auto write = [](const Elements& from, float* to) {
    for (std::size_t i = 0; i < kCopies * kElements; ++i) to[i] = from[i % kElements];
  };
  float* w = parameter.storage().fp32_data();
  write(inputs.initial, w);
  Trajectory after;
  for (int t = 1; t <= kSteps; ++t) {
    write(inputs.gradient(t), parameter.grad.data);
    optimizer.step();
    optimizer.advance();
    after[t].assign(w, w + kCopies * kElements);
  }
  return after;
}

// Every element after every step, by both orders.
struct Bounds {
  std::map<int, std::array<Rounded, kElements>> ours, torch;

  Bounds(const Case& golden, const Inputs& inputs) {
    for (std::size_t i = 0; i < kElements; ++i) {
      const Rounded w{static_cast<double>(inputs.initial[i])};
      Element a{&golden, Order::kOurs, w, {}, {}}, b{&golden, Order::kTorch, w, {}, {}};
      for (int t = 1; t <= kSteps; ++t) {
        a.step(inputs.gradient(t)[i], t);
        b.step(inputs.gradient(t)[i], t);
        ours[t][i] = a.w;
        torch[t][i] = b.w;
      }
    }
  }
  // Not 0 where nothing rounds; two fp32 numbers still differ by more than 2^-24 of their size.
  double tolerance(int t, std::size_t i) const {
    const Rounded& a = ours.at(t)[i];
    return std::max(a.error + torch.at(t)[i].error, 0x1p-24 * std::abs(a.value));
  }
};

// PyTorch's own start leaves dampening * g_1 too much in the momentum, which fades by `momentum` a
// step, so that its w is lower by this factor times g_1 after t steps.
double start_shift(const Case& golden, int t) {
  if (!golden.whole_first_gradient) return 0.0;
  const double momentum = shared(golden.group.rule.momentum).value;
  return golden.group.lr * golden.group.rule.dampening * (1.0 - std::pow(momentum, t)) /
         (1.0 - momentum);
}

// The largest deviation of a run from PyTorch's values, in tolerances. `shifted`: after what
// PyTorch's own start of the momentum explains.
double deviation(const Trajectory& run, const Case& golden, const Bounds& bounds,
                 const Inputs& inputs, bool shifted) {
  double worst = 0.0;
  for (int t : kRecorded) {
    for (std::size_t i = 0; i < kCopies * kElements; ++i) {
      const std::size_t e = i % kElements;
      const double shift =
          shifted ? start_shift(golden, t) * static_cast<double>(inputs.gradient(1)[e]) : 0.0;
      const double difference =
          static_cast<double>(run.at(t)[i]) - (static_cast<double>(golden.after.at(t)[e]) + shift);
      worst = std::max(worst, std::abs(difference) / bounds.tolerance(t, e));
    }
  }
  return worst;
}

// Returns whether hyper-parameters are the same up to a name: without decay, adamw is adam.
bool same_rule(const RuleSpec& a, const RuleSpec& b) {
  const bool same_kind = a.kind == b.kind || (a.kind != RuleKind::kSgd &&
                                              b.kind != RuleKind::kSgd && a.weight_decay == 0.0);
  return same_kind && a.weight_decay == b.weight_decay && a.momentum == b.momentum &&
         a.dampening == b.dampening && a.nesterov == b.nesterov && a.beta1 == b.beta1 &&
         a.beta2 == b.beta2 && a.eps == b.eps;
}

}  // namespace

TEST_CASE("golden: initial values and gradients are those of PyTorch's runs") {
  const nlohmann::json file = read_file();
  const Inputs inputs;
  CHECK(file.at("initial").get<Elements>() == inputs.initial);
  for (int t : kRecorded) {
    CHECK(file.at("gradients").at(std::to_string(t)).get<Elements>() == inputs.gradient(t));
  }
}

TEST_CASE("golden: sgd, adam and adamw are PyTorch's up to roundings") {
  const Inputs inputs;
  for (const Case& golden : read_cases(read_file())) {
    CAPTURE(golden.name);
    const Bounds bounds(golden, inputs);
    const Trajectory run = train(golden.group, inputs);
    CHECK(deviation(run, golden, bounds, inputs, true) <= 1.0);
    // Both sides are where their own order puts them, so the orders were counted rightly.
    for (int t : kRecorded) {
      CAPTURE(t);
      for (std::size_t i = 0; i < kElements; ++i) {
        const Rounded& ours = bounds.ours.at(t)[i];
        const Rounded& torch = bounds.torch.at(t)[i];
        CHECK(std::abs(static_cast<double>(run.at(t)[i]) - ours.value) <= ours.error);
        CHECK(std::abs(static_cast<double>(golden.after.at(t)[i]) - torch.value) <= torch.error);
      }
    }
  }
}

TEST_CASE("golden: any other hyper-parameter is more than 100 tolerances away") {
  const Inputs inputs;
  const std::vector<Case> cases = read_cases(read_file());
  for (const Case& golden : cases) {
    const Bounds bounds(golden, inputs);
    for (const Case& other : cases) {
      if (same_rule(golden.group.rule, other.group.rule)) continue;
      CAPTURE(golden.name);
      CAPTURE(other.name);
      CHECK(deviation(train(other.group, inputs), golden, bounds, inputs, false) > 100.0);
    }
    // Nor is the way that PyTorch starts a dampened momentum a matter of roundings.
    if (!golden.whole_first_gradient) continue;
    CHECK(deviation(train(golden.group, inputs), golden, bounds, inputs, false) > 100.0);
  }
}

}  // namespace tritgrad::test::test_golden_optimizers
