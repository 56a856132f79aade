// Rules against double references, schedules, clipping, and what every pair of a rule and a format
// has in common. What the pairs learn is in test_rule_formats.cpp.
#include "engine/memory/parallel.h"
#include "tests/support/single.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_optim {
namespace {

// Those of all elements of a gradient.
struct Sizes {
  double mean_square = 0.0, largest = 0.0;
};

// Textbook rules on double, one element at a time: the master after `steps` steps. MicroAdam has a
// reference of its own (test_microadam.cpp).
struct Reference {
  RuleSpec spec;
  double lr;
  double w, m = 0.0, v = 0.0;

  double adam(double g, int t) {
    m = spec.beta1 * m + (1 - spec.beta1) * g;
    v = spec.beta2 * v + (1 - spec.beta2) * g * g;
    const double mhat = m / (1 - std::pow(spec.beta1, t));
    return mhat / (std::sqrt(v / (1 - std::pow(spec.beta2, t))) + spec.eps);
  }
  double sgd(double g) {
    m = spec.momentum * m + (1 - spec.dampening) * g;
    return spec.momentum == 0.0 ? g : spec.nesterov ? g + spec.momentum * m : m;
  }

  void step(double g, const Sizes& of, int t) {
    const double decay = spec.weight_decay * w;
    double direction = 0.0;
    switch (spec.kind) {
      case RuleKind::kSgd:
        direction = sgd(g + decay);
        break;
      case RuleKind::kSgdw:
        direction = sgd(g) + decay;
        break;
      case RuleKind::kAdam:
        direction = adam(g + decay, t);
        break;
      case RuleKind::kAdamw:
        direction = adam(g, t) + decay;
        break;
      case RuleKind::kLion: {
        const double ahead = spec.beta1 * m + (1 - spec.beta1) * g;
        direction = (ahead > 0) - (ahead < 0) + decay;
        m = spec.beta2 * m + (1 - spec.beta2) * g;
        break;
      }
      case RuleKind::kSign:
        direction = (g > 0) - (g < 0) + spec.weight_decay * ((w > 0) - (w < 0));
        break;
      case RuleKind::kNormalized:
        direction = t == 1 ? 0.0 : g / std::sqrt(v / (1 - std::pow(spec.beta2, t - 1)));
        m = spec.momentum * m + (1 - spec.momentum) * direction;
        direction = m;
        v = spec.beta2 * v + (1 - spec.beta2) * of.mean_square;
        break;
      case RuleKind::kMicroadam:
        break;
      case RuleKind::kShifted:
        direction = g / std::exp2(std::round(std::log2(of.largest)));
        break;
    }
    w -= lr * direction;
  }
};

bool decays(RuleKind kind) { return kind != RuleKind::kNormalized && kind != RuleKind::kShifted; }

void compare_with_reference(const RuleSpec& spec) {
  CAPTURE(std::string(rule_name(spec.kind)));
  constexpr std::int64_t kN = 37;
  GroupSpec group;
  group.rule = spec;
  group.lr = 0.01;
  if (spec.kind == RuleKind::kNormalized) group.v.kind = FormatKind::kScalar;
  Single single({kN}, {}, group);
  std::vector<Reference> references;
  for (double w : decoded(single.w().storage())) references.push_back({spec, 0.01, w});
  for (int t = 1; t <= 100; ++t) {
    const std::vector<float> grad = numbers(kN, static_cast<std::uint32_t>(100 + t));
    Sizes of;
    for (float g : grad) {
      of.mean_square += static_cast<double>(g) * static_cast<double>(g) / kN;
      of.largest = std::max(of.largest, std::abs(static_cast<double>(g)));
    }
    for (std::size_t i = 0; i < references.size(); ++i) {
      references[i].step(static_cast<double>(grad[i]), of, t);
    }
    single.step(grad);
  }
  const std::vector<double> w = decoded(single.w().storage());
  // Each of the 100 steps moves w (|w| <= 3) by about lr and rounds a handful of times: the sum of
  // 100 * (ulp of w + 8 roundings of a step of 0.03).
  const double tolerance = 100.0 * (3.0 + 8.0 * 0.03) * 0x1p-24;
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(std::abs(w[i] - references[i].w) <= tolerance);
}

}  // namespace

TEST_CASE("optim: every rule follows its double reference for 100 steps") {
  for (RuleKind kind : kAllRules) {
    if (kind == RuleKind::kMicroadam) continue;
    for (double weight_decay : {0.0, 0.1}) {
      RuleSpec spec;
      spec.kind = kind;
      if (decays(kind)) spec.weight_decay = weight_decay;
      compare_with_reference(spec);
      spec.beta1 = 0.8;
      spec.beta2 = 0.95;
      compare_with_reference(spec);
      spec.momentum = 0.9;
      compare_with_reference(spec);
      spec.nesterov = true;
      compare_with_reference(spec);
      spec.nesterov = false;
      spec.dampening = 0.9;
      compare_with_reference(spec);
    }
  }
}

TEST_CASE("optim: results do not depend on the number of threads") {
  // 700 x 333 elements are 8 units of work for rules of short runs and for MicroAdam's alike.
  const Shape shape{700, 333};
  const auto compare = [&](const GroupSpec& group, const FormatSpec& format_spec) {
    std::vector<std::vector<std::byte>> weights, states;
    for (int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      Single single(shape, format_spec, group);
      for (std::uint32_t t = 0; t < 3; ++t) single.step(numbers(shape.size(), 50 + t));
      weights.push_back(all_bytes(single.w().storage()));
      states.push_back(single.state());
    }
    set_thread_count(0);
    for (std::size_t i = 1; i < weights.size(); ++i) {
      CHECK(weights[i] == weights[0]);
      CHECK(states[i] == states[0]);
    }
  };
  GroupSpec group;
  group.lr = 0.05;
  for (RuleKind rule : kAllRules) {
    CAPTURE(std::string(rule_name(rule)));
    group.rule.kind = rule;
    compare(group, format(FormatKind::kLatent8));
    compare(group, format(FormatKind::kSplit24));
  }
  group.rule.kind = RuleKind::kAdamw;
  for (FormatKind kind : formats_for(kWeight)) {
    CAPTURE(std::string(format_name(kind)));
    compare(group, format(kind));
  }
  group.m = format(FormatKind::kInt8);
  group.v = format(FormatKind::kFactored);
  group.eco = EcoForm::kLrAware;
  for (FormatKind kind : {FormatKind::kTrits, FormatKind::kInt4, FormatKind::kFp8}) {
    CAPTURE(std::string(format_name(kind)));
    compare(group, format(kind));
  }
}

TEST_CASE("optim: a zero gradient changes nothing") {
  for (RuleKind rule : kAllRules) {
    for (FormatKind kind : formats_for(kWeight)) {
      GroupSpec group;
      group.rule.kind = rule;
      Single single({5, 40}, format(kind), group);
      const std::vector<std::byte> before = all_bytes(single.w().storage());
      for (int t = 0; t < 5; ++t) single.step(std::vector<float>(200, 0.0f));
      CHECK(all_bytes(single.w().storage()) == before);
    }
  }
}

TEST_CASE("optim: global-norm clipping scales all gradients alike, and needs them kept") {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  group.lr = 1.0;
  Single single({2}, {}, group);
  const auto moves = [&](double max_norm) {
    const std::vector<double> before = decoded(single.w().storage());
    single.w().grad.data[0] = 3.0f;
    single.w().grad.data[1] = 4.0f;
    CHECK(single.optimizer->clip_grad_norm(max_norm) == 5.0);  // of small integers, in double
    single.optimizer->step();
    single.optimizer->advance();
    const std::vector<double> after = decoded(single.w().storage());
    return std::vector<double>{before[0] - after[0], before[1] - after[1]};
  };
  // The weights stay within +-8, where floats are 2^-21 apart; the factor and its product are
  // rounded by 2^-24 of a number below 1 each.
  const auto check_move = [](double move, double expected) {
    CHECK(std::abs(move - expected) <= 0x1p-22 + 2.0 * 0x1p-24);
  };
  const std::vector<double> whole = moves(10.0);
  check_move(whole[0], 3.0);
  check_move(whole[1], 4.0);
  const std::vector<double> clipped = moves(1.0);
  check_move(clipped[0], 0.6);
  check_move(clipped[1], 0.8);

  ParameterStore released;
  released.add({"w", Role::kWeight, {2, 2}, {}, {}}, 1);
  Optimizer optimizer(
      released, [&](const ParameterSpec&) { return group; }, 10, 1);
  CHECK_THROWS_WITH_AS(optimizer.clip_grad_norm(1.0),
                       "clip_grad_norm: the gradient of 'w' is released as soon as it is used; set "
                       "gradients = \"kept\" to clip by the global norm",
                       Error);
}

TEST_CASE("optim: schedules are pure functions of the step") {
  Schedule s;
  // Three operations on doubles up to 1, and their constants: a rounding of 2^-53 each at most, as
  // where the cosine is of pi / 2 its error is 2^-53, too.
  const auto check_factor = [&](std::int64_t step, double expected) {
    CAPTURE(step);
    CHECK(std::abs(s.factor(step, 100) - expected) <= 6.0 * 0x1p-53);
  };
  CHECK(s.factor(0, 100) == 1.0);
  CHECK(s.factor(99, 100) == 1.0);
  s.warmup = 0.1;
  check_factor(0, 0.1);
  check_factor(9, 1.0);
  s.kind = Schedule::Kind::kLinear;
  s.final = 0.2;
  check_factor(10, 1.0);
  check_factor(55, 0.6);
  check_factor(100, 0.2);
  s.kind = Schedule::Kind::kCosine;
  check_factor(55, 0.6);
  check_factor(100, 0.2);
  s.kind = Schedule::Kind::kWarmupStableDecay;
  s.final = 0.0;
  CHECK(s.factor(79, 100) == 1.0);
  check_factor(90, 0.5);
  CHECK(s.factor(100, 100) == 0.0);
  CHECK(s.factor(5, 0) >= 0.0);  // an empty run does not divide by zero
}

TEST_CASE("optim: lr_relative counts in units of the initial size") {
  ParameterStore store;
  store.add(
      {"s", Role::kScale, {4, 1}, format(FormatKind::kScale16), {Initial::Kind::kConstant, 0.05f}},
      1);
  GroupSpec group;
  group.lr = 1e-2;
  group.lr_relative = true;
  Optimizer optimizer(
      store, [&](const ParameterSpec&) { return group; }, 10, 1);
  CHECK(optimizer.lr(store.find("s")) == 1e-2 * double{0.05f});
}

TEST_CASE("optim: hyper-parameters outside their ranges are refused by name") {
  RuleSpec spec;
  spec.beta1 = 1.0;
  CHECK_THROWS_WITH_AS(make_rule(spec), "rule: beta1 = 1 is outside [0, 1)", Error);
  spec = {};
  spec.nesterov = true;
  CHECK_THROWS_WITH_AS(make_rule(spec), "rule: nesterov needs momentum > 0 and dampening = 0",
                       Error);
  CHECK_THROWS_AS(parse_rule("adamx"), Error);
  CHECK_THROWS_AS(parse_schedule("cosin"), Error);
}

TEST_CASE("optim: a refused step has moved nothing, a skipped one only what is sound") {
  const auto run = [](NonFinite policy, double max_norm) {
    GroupSpec group;
    ParameterStore store;
    for (const char* name : {"a", "b"}) {
      store.add({name, Role::kWeight, {8}, {}, {Initial::Kind::kUniform, 1.0f}}, 1);
    }
    store.keep_gradients();
    Optimizer optimizer(
        store, [&](const ParameterSpec&) { return group; }, 10, 1, policy);
    store.find("a").grad.fill(0.5f);
    store.find("b").grad.fill(0.5f);
    store.find("b").grad.data[3] = std::nanf("");
    const std::vector<std::byte> a = all_bytes(store.find("a").storage());
    const std::vector<std::byte> b = all_bytes(store.find("b").storage());
    std::string message;
    try {
      if (max_norm > 0.0) optimizer.clip_grad_norm(max_norm);
      optimizer.step();
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK(all_bytes(store.find("b").storage()) == b);
    CHECK(optimizer.skipped_updates() == (policy == NonFinite::kSkip ? 1 : 0));
    CHECK((message.find("the gradient of 'b' is not finite") != std::string::npos) ==
          (policy == NonFinite::kRefuse));
    return all_bytes(store.find("a").storage()) == a;
  };
  CHECK(run(NonFinite::kRefuse, 0.0));
  CHECK(run(NonFinite::kRefuse, 1.0));
  CHECK_FALSE(run(NonFinite::kSkip, 0.0));  // 'a' moves
  CHECK(run(NonFinite::kSkip, 1.0));        // no joint norm, no step
}

TEST_CASE("optim: what is not finite in a gradient kept in bf16 is found wherever it lies") {
  constexpr std::int64_t kSize = 40000;  // more than one thread looks at
  for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{39000}, std::int64_t{-1}}) {
    ParameterStore store;
    Parameter& w = store.add({"w", Role::kWeight, {kSize}, {}, {Initial::Kind::kUniform, 1.0f}}, 1);
    store.keep_gradients(FormatKind::kBf16);
    Optimizer optimizer(
        store, [](const ParameterSpec&) { return GroupSpec{}; }, 10, 1, NonFinite::kSkip);
    std::vector<float> gradient(kSize, 0.5f);
    if (bad >= 0) gradient[static_cast<std::size_t>(bad)] = std::nanf("");
    w.grad = {gradient.data(), w.shape()};
    w.collect_gradient();
    w.grad = {};
    const std::vector<std::byte> before = all_bytes(w.storage());
    optimizer.step();
    CHECK((all_bytes(w.storage()) == before) == (bad >= 0));
    CHECK(optimizer.skipped_updates() == (bad >= 0 ? 1 : 0));
  }
}

TEST_CASE("optim: numbers of steps that no run has made are refused") {
  GroupSpec group;
  Single single({4}, {}, group, 100);
  single.plane<std::int64_t>("w/updates")[0] = -1;
  CHECK_THROWS_AS(single.optimizer->resume_at(50), Error);
  single.plane<std::int64_t>("w/updates")[0] = 51;
  CHECK_THROWS_AS(single.optimizer->resume_at(50), Error);
  single.plane<std::int64_t>("w/updates")[0] = 50;
  single.optimizer->resume_at(50);
  CHECK_THROWS_AS(single.optimizer->resume_at(101), Error);
  CHECK_THROWS_AS(single.optimizer->resume_at(-1), Error);
}

TEST_CASE("optim: a gradient that is not finite is refused or skipped, and nothing changes") {
  for (RuleKind rule : kAllRules) {
    CAPTURE(std::string(rule_name(rule)));
    for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      for (NonFinite policy : {NonFinite::kRefuse, NonFinite::kSkip}) {
        GroupSpec group;
        group.rule.kind = rule;
        group.lr = 0.05;
        Single single({3, 40}, format(FormatKind::kLatent8), group, 1000, policy);
        for (int t = 0; t < 3; ++t) single.step(numbers(120, 3));
        const std::vector<std::byte> weights = all_bytes(single.w().storage());
        const std::vector<std::byte> state = single.state();
        std::vector<float> grad = numbers(120, 5);
        grad[77] = bad;
        if (policy == NonFinite::kRefuse) {
          CHECK_THROWS_WITH_AS(
              single.step(grad),
              "step 4: the gradient of 'w' is not finite; the parameter was not changed; lower the "
              "learning rate, or set non_finite = \"skip\" to leave such updates out",
              Error);
        } else {
          single.step(grad);
          CHECK(single.optimizer->skipped_updates() == 1);
        }
        CHECK(all_bytes(single.w().storage()) == weights);
        CHECK(single.state() == state);
      }
    }
  }
}

}  // namespace tritgrad::test::test_optim
