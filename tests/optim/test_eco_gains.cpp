// ECO: what a carried error weighs in later steps, by rule.
#include <numeric>

#include "tests/support/eco_group.h"

namespace tritgrad::test::test_eco_gains {
namespace {

// The engine beside the recursion in double: sgd with Nesterov's look-ahead, or AdamW or
// normalized, whose mean squares are kept in `v`; a rate that falls to a tenth.
void follow_recursion(EcoForm form, RuleKind kind, FormatKind v_format, int steps) {
  const bool adam = kind == RuleKind::kAdamw, normalized = kind == RuleKind::kNormalized;
  CAPTURE(std::string(rule_name(kind)));
  CAPTURE(static_cast<int>(form));
  CAPTURE(std::string(format_name(v_format)));
  GroupSpec group = eco_group(form, 0.05);
  group.rule.kind = kind;
  group.rule.dampening = 0.0;
  group.rule.nesterov = kind == RuleKind::kSgd;
  group.v.kind = v_format;
  group.schedule.kind = Schedule::Kind::kCosine;
  group.schedule.final = 0.1;
  const std::size_t n = 30;
  Single single({static_cast<std::int64_t>(n)}, format(FormatKind::kTrits, Rounding::kNearest),
                group, steps);
  std::vector<double> w = decoded(single.w().storage()), m(n, 0.0), v(n, 0.0);
  for (int t = 1; t <= steps; ++t) {
    const std::vector<float> grad = numbers(n, static_cast<std::uint32_t>(200 + t));
    const double lr = 0.05 * group.schedule.factor(t - 1, steps);
    const double next = 0.05 * group.schedule.factor(t, steps);
    const double c = 1 - std::pow(kBeta, t), c_next = 1 - std::pow(kBeta, t + 1);
    for (std::size_t i = 0; i < n; ++i) {
      double g = static_cast<double>(grad[i]);
      const double before = v[i];
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double d = std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8;
      if (normalized) g = t == 1 ? 0.0 : g / std::sqrt(before / (1 - std::pow(0.999, t - 1)));
      m[i] = kBeta * m[i] + (adam || normalized ? 1 - kBeta : 1.0) * g;
      const double direction = adam ? m[i] / c / d : normalized ? m[i] : g + kBeta * m[i];
      const double exact = std::clamp(w[i] - lr * direction, -1.5, 1.5);
      w[i] = std::clamp(std::rint(exact), -1.0, 1.0);
      const double error = exact - w[i];
      const double inverse_gain = adam ? c * d : normalized ? 1.0 : 1 / kBeta;
      // In the next step the gain is another: Adam's bias correction has gone on.
      const double next_inverse_gain = adam ? c_next * d : inverse_gain;
      if (form == EcoForm::kLrAware) {
        m[i] += (t == 1 ? 0.0 : inverse_gain / lr) * error;
        m[i] -= next_inverse_gain / (kBeta * next) * error;
      } else {
        m[i] += (1 - 1 / kBeta) / lr * inverse_gain * error;
        if (form == EcoForm::kRescaled) m[i] *= lr / next;
      }
    }
    if (v_format == FormatKind::kScalar) {
      const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(n);
      std::fill(v.begin(), v.end(), mean);
    }
    single.step(grad);
  }
  CHECK(decoded(single.w().storage()) == w);
  const std::span<float> stored = single.plane<float>("w/m/value");
  // |m| <= |error| / (lr beta^2) + |g| <= 125 at the last rates. 60 steps of about 12 roundings add
  // up, in the mean square, to sqrt(720) = 27 of the largest; 120 are allowed.
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(std::abs(static_cast<double>(stored[i]) - m[i]) <= 120 * 125 * 0x1p-24);
  }
}

}  // namespace

TEST_CASE(
    "eco: gains of Nesterov's look-ahead, of Adam and of normalized carry the error in their "
    "units") {
  constexpr int kSteps = 60;
  for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
    follow_recursion(form, RuleKind::kSgd, FormatKind::kFp32, kSteps);
    follow_recursion(form, RuleKind::kAdamw, FormatKind::kFp32, kSteps);
    follow_recursion(form, RuleKind::kAdamw, FormatKind::kScalar, kSteps);
    follow_recursion(form, RuleKind::kNormalized, FormatKind::kFp32, kSteps);
    follow_recursion(form, RuleKind::kNormalized, FormatKind::kScalar, kSteps);
  }
}

// Weights at 0 that have come two fifths of the way to a flip, and then gradients that only
// tremble, ever less: nothing asks for a flip any more.
TEST_CASE("eco: carried errors stay as they are when mean squares fall, but for Adam's") {
  for (RuleKind kind : {RuleKind::kNormalized, RuleKind::kAdamw}) {
    GroupSpec group = eco_group(EcoForm::kRescaled, 0.01);
    group.rule.kind = kind;
    group.rule.momentum = group.rule.beta1 = 0.1;
    group.rule.beta2 = 0.99;
    group.v.kind = FormatKind::kScalar;
    constexpr std::size_t kSize = 40;
    Single single({kSize}, format(FormatKind::kTrits, Rounding::kNearest), group, 1000);
    encode_all(single.w().storage(), std::vector<float>(kSize, 0.0f));
    std::vector<float> grad(kSize);
    const auto step = [&](double size, double mean) {
      for (std::size_t i = 0; i < kSize; ++i) {
        grad[i] = static_cast<float>((i % 2 == 0 ? size : -size) + mean);
      }
      single.step(grad);
    };
    for (int t = 0; t < 200; ++t) step(t % 2 == 0 ? 1.0 : -1.0, 0.1);
    CHECK(decoded(single.w().storage()) == std::vector<double>(kSize, 0.0));
    double size = 1.0;
    for (int t = 0; t < 600; ++t, size *= 0.995) step(t % 2 == 0 ? size : -size, 0.0);
    const bool stays = decoded(single.w().storage()) == std::vector<double>(kSize, 0.0);
    CHECK(stays == (kind == RuleKind::kNormalized));
  }
}

}  // namespace tritgrad::test::test_eco_gains
