// ECO: the derivation against an oracle, the engine against its own recursion, and what it is for.
#include "tests/support/eco_group.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_eco {
namespace {

constexpr double kDecay = 0.1;

// Learning rates of 400 steps: constant, cosine to a tenth, and a drop by five.
std::vector<double> rates(int kind) {
  std::vector<double> lr;
  for (int t = 0; t <= 400; ++t) {
    const double cosine = 0.1 + 0.9 * 0.5 * (1.0 + std::cos(3.14159265358979 * t / 400.0));
    lr.push_back(0.02 * (kind == 0 ? 1.0 : kind == 1 ? cosine : t < 200 ? 1.0 : 0.2));
  }
  return lr;
}

// A coupled quadratic in 50 dimensions: g = A (w - goal), A = I + a rank-one part.
std::vector<double> gradient(const std::vector<double>& w) {
  double mean = 0.0;
  std::vector<double> g(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    g[i] = w[i] - std::sin(1.7 * static_cast<double>(i));
    mean += g[i] / static_cast<double>(w.size());
  }
  for (double& x : g) x += 0.5 * mean;
  return g;
}

constexpr double kGrid = 0.1;
double rounded(double x) { return kGrid * std::rint(x / kGrid); }
std::vector<double> rounded(std::vector<double> w) {
  for (double& x : w) x = rounded(x);
  return w;
}
std::vector<double> start() {
  std::vector<double> w(50);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = rounded(std::cos(static_cast<double>(i)));
  return w;
}

// Quantised training with a master copy, which keeps what rounding drops: the trajectory of W*.
std::vector<std::vector<double>> master_trajectory(const std::vector<double>& lr) {
  std::vector<std::vector<double>> path;
  std::vector<double> w = start(), m(50, 0.0);
  for (std::size_t t = 0; t < 400; ++t) {
    const std::vector<double> g = gradient(rounded(w));
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = kBeta * m[i] + (1 - kBeta) * g[i];
      w[i] = (1 - lr[t] * kDecay) * w[i] - lr[t] * m[i];
    }
    path.push_back(w);
  }
  return path;
}

// ECO without a master: largest distance, in grid steps, of the unrounded weights from W*.
// carried and given are the coefficients of the last and of the new rounding error.
double deviation(const std::vector<double>& lr, const std::function<double(std::size_t)>& carried,
                 const std::function<double(std::size_t)>& given) {
  const auto path = master_trajectory(lr);
  std::vector<double> w = start(), m(50, 0.0), error(50, 0.0);
  double worst = 0.0;
  for (std::size_t t = 0; t < 400; ++t) {
    const std::vector<double> g = gradient(w);
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = kBeta * m[i] + (1 - kBeta) * g[i];
      const double exact = (1 - lr[t] * kDecay) * w[i] - lr[t] * m[i];
      worst = std::max(worst, std::abs(exact - path[t][i]) / kGrid);
      w[i] = rounded(exact);
      const double dropped = exact - w[i];
      m[i] += carried(t) * error[i] + given(t) * dropped;
      error[i] = dropped;
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("eco: with both errors the master trajectory is reproduced, whatever the schedule") {
  for (int kind = 0; kind < 3; ++kind) {
    const std::vector<double> lr = rates(kind);
    const auto carried = [&](std::size_t t) { return (1 - lr[t] * kDecay) / lr[t]; };
    const auto given = [&](std::size_t t) {
      return -(1 - lr[t + 1] * kDecay) / (kBeta * lr[t + 1]);
    };
    CHECK(deviation(lr, carried, given) <= 1e-10);
  }
}

TEST_CASE("eco: one error only is near, and knowing the next rate helps when the rate changes") {
  const auto none = [](std::size_t) { return 0.0; };
  const std::unique_ptr<Rule> rule = make_rule(eco_group(EcoForm::kPublished, 1.0).rule);
  for (int kind = 1; kind < 3; ++kind) {
    const std::vector<double> lr = rates(kind);
    const auto alpha = [&](EcoForm form) {
      return [&lr, &rule, form](std::size_t t) {
        return static_cast<double>(
            eco_step(form, *rule, kDecay, lr[t], lr[t + 1], static_cast<std::int64_t>(t) + 1)
                .alpha);
      };
    };
    const double published = deviation(lr, none, alpha(EcoForm::kPublished));
    const double aware = deviation(lr, none, alpha(EcoForm::kLrAware));
    const double nothing = deviation(lr, none, none);
    CAPTURE(published);
    CAPTURE(aware);
    CAPTURE(nothing);
    CHECK(aware < published);
    CHECK(published < nothing);
  }
}

TEST_CASE("eco: the engine follows the single-term recursion") {
  for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
    GroupSpec group = eco_group(form, 0.05);
    group.rule.weight_decay = kDecay;
    group.schedule.kind = Schedule::Kind::kCosine;
    group.schedule.final = 0.1;
    const std::int64_t n = 40;
    constexpr int kSteps = 100;
    Single single({n}, format(FormatKind::kTrits, Rounding::kNearest), group, kSteps);
    std::vector<double> w = decoded(single.w().storage()), m(static_cast<std::size_t>(n), 0.0);
    const std::unique_ptr<Rule> rule = make_rule(group.rule);
    for (int t = 1; t <= kSteps; ++t) {
      const double lr = 0.05 * group.schedule.factor(t - 1, kSteps);
      const double next = 0.05 * group.schedule.factor(t, kSteps);
      const double given = (1 - next * kDecay) / (kBeta * next);
      const double alpha = form != EcoForm::kLrAware ? (1 - 1 / kBeta) / lr
                           : t == 1                  ? -given
                                                     : (1 - lr * kDecay) / lr - given;
      const std::vector<float> grad = numbers(n, static_cast<std::uint32_t>(t));
      for (std::size_t i = 0; i < w.size(); ++i) {
        m[i] = kBeta * m[i] + (1 - kBeta) * static_cast<double>(grad[i]);
        const double exact = std::clamp(w[i] - lr * (m[i] + kDecay * w[i]), -1.5, 1.5);
        w[i] = std::clamp(std::rint(exact), -1.0, 1.0);
        m[i] = (m[i] + alpha * (exact - w[i])) * (form == EcoForm::kRescaled ? lr / next : 1.0);
      }
      single.step(grad);
    }
    CHECK(decoded(single.w().storage()) == w);
    const std::span<float> stored = single.plane<float>("w/m/value");
    // |m| <= |error| / (lr beta) + |g| <= 112 at the last rates; 100 steps of about 6 roundings, of
    // which none is forgotten, as the error puts back what beta takes. They are independent: in
    // the mean square as many as sqrt(600) = 25 of the largest; 60 are allowed.
    for (std::size_t i = 0; i < w.size(); ++i) {
      CHECK(std::abs(static_cast<double>(stored[i]) - m[i]) <= 60 * 112 * 0x1p-24);
    }
  }
}

TEST_CASE("eco: where rounding to nearest never moves, the carried error does") {
  for (EcoForm form : {EcoForm::kOff, EcoForm::kPublished}) {
    for (RuleKind rule : {RuleKind::kSgd, RuleKind::kAdamw, RuleKind::kNormalized}) {
      GroupSpec group = eco_group(form, 1e-3);
      group.rule.kind = rule;
      group.rule.weight_decay = 0.0;
      group.rule.momentum = group.rule.dampening = group.rule.beta1 = 0.5;
      Single single({2, 30}, format(FormatKind::kTrits, Rounding::kNearest), group, 10000);
      const std::vector<std::byte> before = all_bytes(single.w().storage());
      // A constant pull of every weight to +1; half a trit is reached after 500 steps of a master,
      // and after 1 / (1 - beta) as many with one error (HACKING.md, The idea).
      for (int t = 0; t < 4000; ++t) {
        std::vector<float> grad;
        for (double w : decoded(single.w().storage())) {
          grad.push_back(static_cast<float>(w) - 1.0f);
        }
        single.step(grad);
      }
      if (form == EcoForm::kOff) {
        CHECK(all_bytes(single.w().storage()) == before);
      } else {
        for (double w : decoded(single.w().storage())) CHECK(w == 1.0);
      }
    }
  }
}

TEST_CASE("eco: a rate of zero does nothing at all, also when it rises from zero") {
  GroupSpec group = eco_group(EcoForm::kLrAware, 0.0);
  Single frozen({20}, format(FormatKind::kTrits), group);
  const std::vector<std::byte> weights = all_bytes(frozen.w().storage());
  const std::vector<std::byte> state = frozen.state();
  for (std::uint32_t t = 0; t < 5; ++t) frozen.step(numbers(20, t));
  CHECK(all_bytes(frozen.w().storage()) == weights);
  CHECK(frozen.state() == state);

  // From lr = 0: the next step is the first one.
  const std::unique_ptr<Rule> rule = make_rule(group.rule);
  CHECK(eco_step(EcoForm::kLrAware, *rule, 0.0, 0.0, 0.1, 1).skip);
  CHECK(eco_step(EcoForm::kPublished, *rule, 0.0, 1e-300, 0.1, 3).skip);
  // To lr = 0: nothing follows, so the published form serves, and nothing is infinite.
  for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
    const EcoStep last = eco_step(form, *rule, 0.0, 0.1, 0.0, 7);
    CHECK(last.alpha == doctest::Approx((1.0 - 1.0 / kBeta) / 0.1));
    CHECK(last.rescale == 1.0f);
  }
}

TEST_CASE("eco: after steps with a rate of zero, training goes as if they had not been") {
  // Zero for 81 of 100 steps, then rising to 1: 1 - 1e30 is -1e30 in double, so that the
  // schedule is 0 exactly until the decay, of its distance from `final`, begins.
  constexpr int kSteps = 100, kZero = 81;
  for (RuleKind kind : {RuleKind::kSgdw, RuleKind::kAdamw, RuleKind::kNormalized}) {
    for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
      for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
        CAPTURE(std::string(rule_name(kind)));
        CAPTURE(static_cast<int>(form));
        CAPTURE(static_cast<int>(rounding));
        GroupSpec group = eco_group(form, 1e-30);
        group.rule.kind = kind;
        group.rule.weight_decay = kDecay;
        group.schedule.kind = Schedule::Kind::kWarmupStableDecay;
        group.schedule.final = 1e30;
        group.m = format(FormatKind::kInt8);
        const FormatSpec trits = format(FormatKind::kTrits, rounding);
        Single waiting({40}, trits, group, kSteps);
        const std::vector<std::byte> weights = all_bytes(waiting.w().storage());
        const std::vector<std::byte> state = waiting.state();
        for (int t = 0; t < kZero; ++t) {
          REQUIRE(waiting.optimizer->lr(waiting.w()) == 0.0);
          waiting.step(numbers(40, static_cast<std::uint32_t>(t)));
        }
        CHECK(all_bytes(waiting.w().storage()) == weights);
        CHECK(waiting.state() == state);

        Single begun({40}, trits, group, kSteps);  // at the first rate that is not zero
        begun.optimizer->resume_at(kZero);
        for (int t = kZero; t < kSteps; ++t) {
          CHECK(waiting.optimizer->lr(waiting.w()) > 0.0);
          waiting.step(numbers(40, static_cast<std::uint32_t>(t)));
          begun.step(numbers(40, static_cast<std::uint32_t>(t)));
          CHECK(all_bytes(waiting.w().storage()) == all_bytes(begun.w().storage()));
          CHECK(waiting.state() == begun.state());
        }
        CHECK(waiting.state() != state);
      }
    }
  }
}

TEST_CASE("eco: a rate that falls to zero loses nothing that was learnt") {
  constexpr int kSteps = 1500;
  constexpr std::int64_t kSize = 40;
  for (RuleKind kind : {RuleKind::kSgdw, RuleKind::kAdamw, RuleKind::kNormalized}) {
    for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
      for (FormatKind m : {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kInt8}) {
        CAPTURE(std::string(rule_name(kind)));
        CAPTURE(static_cast<int>(form));
        CAPTURE(std::string(format_name(m)));
        GroupSpec group = eco_group(form, 0.02);
        group.rule.kind = kind;
        group.rule.momentum = group.rule.dampening = group.rule.beta1 = 0.5;
        group.schedule.kind = Schedule::Kind::kCosine;
        group.m = format(m);
        Single single({kSize}, format(FormatKind::kTrits, Rounding::kNearest), group, kSteps);
        std::vector<double> goal;
        for (std::int64_t i = 0; i < kSize; ++i) goal.push_back(static_cast<double>(i % 3 - 1));
        const auto wrong = [&] {
          const std::vector<double> w = decoded(single.w().storage());
          std::int64_t count = 0;
          for (std::size_t i = 0; i < w.size(); ++i) count += w[i] != goal[i];
          return count;
        };
        std::int64_t late = 0;
        for (int t = 0; t < kSteps; ++t) {
          const std::vector<double> w = decoded(single.w().storage());
          // The first part cancels from step to step, and keeps Adam's mean squares what they are.
          std::vector<float> grad(kSize, t % 2 == 0 ? 0.5f : -0.5f);
          for (std::size_t i = 0; i < grad.size(); ++i) {
            grad[i] += static_cast<float>(w[i] - goal[i]);
          }
          single.step(grad);
          if (t == kSteps * 9 / 10) late = wrong();
        }
        CHECK(single.optimizer->lr(single.w()) == 0.0);
        CHECK(late == 0);
        CHECK(wrong() == 0);
        for (double x : decoded(single.optimizer->moment(single.w(), 0))) CHECK(std::isfinite(x));
      }
    }
  }
}

TEST_CASE("eco: Adam's first steps use the bias correction of the next step") {
  RuleSpec spec;
  const std::unique_ptr<Rule> adam = make_rule(spec);
  // c1 = .1, c1' = .19: in units of the gain 1 / (c1 D), the first coefficient is -c1' / (beta c1).
  const EcoStep first = eco_step(EcoForm::kLrAware, *adam, 0.0, 0.01, 0.01, 1);
  CHECK(first.alpha == doctest::Approx(-0.19 / 0.1 / 0.9 / 0.01));
  const EcoStep second = eco_step(EcoForm::kLrAware, *adam, 0.0, 0.01, 0.01, 2);
  CHECK(second.alpha == doctest::Approx((1.0 - 0.271 / 0.19 / 0.9) / 0.01));
}

TEST_CASE("eco: refused where no error can be carried, with the reason") {
  const FormatSpec trits = format(FormatKind::kTrits);
  const auto refused = [](RuleKind kind, const FormatSpec& spec) {
    RuleSpec rule;
    rule.kind = kind;
    return refusal([&] { check_eco(rule, spec); });
  };
  CHECK(refused(RuleKind::kAdamw, trits).empty());
  RuleSpec averaged;
  averaged.kind = RuleKind::kNormalized;
  averaged.momentum = 0.1;
  CHECK_NOTHROW(check_eco(averaged, trits));
  CHECK(refused(RuleKind::kLion, trits).find("takes the sign") != std::string::npos);
  CHECK(refused(RuleKind::kSign, trits).find("takes the sign") != std::string::npos);
  CHECK(refused(RuleKind::kNormalized, trits).find("momentum 0") != std::string::npos);
  CHECK(refused(RuleKind::kMicroadam, trits).find("window") != std::string::npos);
  CHECK(refused(RuleKind::kSgd, trits).find("momentum 0") != std::string::npos);
  for (FormatKind kind : {FormatKind::kFp32, FormatKind::kLatent8, FormatKind::kSplit24,
                          FormatKind::kTernary, FormatKind::kTernaryMaster}) {
    CHECK(refused(RuleKind::kAdamw, format(kind)).find("own residual") != std::string::npos);
  }
}

}  // namespace tritgrad::test::test_eco
