// The matrix: every rule on every format, with every format of moments.
//
// The toy is a quadratic with a target on the ternary grid (for scales: above zero), so that all
// formats can hold the minimum: loss = mean (w - target)^2, gradient w - target (of the value). How
// near a pair has to come follows from the grid of its format: see target_of().
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "tests/support/saved_single.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_rule_formats {
namespace {

const Shape kShape{13, 29};
constexpr int kSteps = 300;

GroupSpec group_of(RuleKind rule) {
  GroupSpec group;
  group.rule.kind = rule;
  group.lr = 0.05;
  group.rule.density = 0.25;  // of few elements a hundredth would be one
  if (rule == RuleKind::kLion) group.rule.beta2 = 0.99;
  group.schedule.kind = Schedule::Kind::kCosine;
  return group;
}

// Trits, but for a format of numbers above zero 0.5, 1 and 1.5. Each step asks for them, so they
// are drawn once.
const std::vector<float>& goals(FormatKind kind, const Shape& shape) {
  static std::map<std::pair<bool, std::int64_t>, std::vector<float>> drawn;
  const bool above_zero = kind == FormatKind::kScale16;
  std::vector<float>& goal = drawn[{above_zero, shape.size()}];
  if (!goal.empty()) return goal;
  goal = numbers(shape.size(), 77);
  for (float& t : goal) t = std::rint(1.4f * t);
  if (above_zero) {
    for (float& t : goal) t = 1.0f + 0.5f * t;
  }
  return goal;
}

std::vector<float> gradient(Single& single) {
  const Storage& storage = single.w().storage();
  const std::vector<float>& goal = goals(storage.spec().kind, storage.shape());
  const std::vector<double> w = decoded(storage);
  std::vector<float> grad(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) grad[i] = static_cast<float>(w[i]) - goal[i];
  return grad;
}

// Distance of the values from the goals.
struct Distance {
  double worst = 0.0;
  double typical = 0.0;  // root mean square
  double wrong = 0.0;    // share of values that are nearer to another trit than to their goal
};

Distance distance(Single& single) {
  Distance d;
  const auto size = static_cast<double>(single.w().shape().size());
  for (float g : gradient(single)) {
    const double off = std::abs(static_cast<double>(g));
    d.worst = std::max(d.worst, off);
    d.typical += off * off / size;
    d.wrong += (off > 0.5) / size;
  }
  d.typical = std::sqrt(d.typical);
  return d;
}

// The product of 1 - rate * lr over the steps that group_of() asks for.
double left_over(double rate) {
  const GroupSpec group = group_of(RuleKind::kSgd);
  double left = 1.0;
  for (int t = 0; t < kSteps; ++t) {
    left *= 1.0 - rate * group.lr * group.schedule.factor(t, kSteps);
  }
  return left;
}

// From one number of the format to the next around 1, where the goals are that are not 0 (there
// floats are finer). The largest of a group of integers is about 1.
double level(FormatKind kind) {
  switch (kind) {
    case FormatKind::kFp32:
      return 0x1p-23;
    case FormatKind::kBf16:
    case FormatKind::kSplit24:  // the value that is read; the correction is finer
    case FormatKind::kSplit32:
      return 0x1p-7;
    case FormatKind::kScale16:
      return 0x1p-10;
    case FormatKind::kFp8:
    case FormatKind::kFp8Master:  // its value, as is that of int4_master
      return 32.0 / 448.0;
    case FormatKind::kInt8:
      return 1.0 / 127.0;
    case FormatKind::kInt4:
    case FormatKind::kInt4Master:
      return 1.0 / 7.0;
    default:
      fail("level: no grid of numbers");
  }
}

// How near a pair has to come. (At the start, two of three values are nearer to a wrong trit.)
//
// Numbers: without a grid, sgd leaves 2 prod (1 - lr) = 1.1e-3 of the largest distance, 2; the
// other rules, which divide by what gradients have been, leave less. With a grid, stochastic
// rounding is a walk over its levels with a drift to the goal. It rests on the goal, or goes to and
// fro between the two levels around it (the scale of a group need not hit 1); a momentum
// overshoots, and what shares a scale is rounded anew when the scale moves. Four levels at most,
// one and a half in the mean. With a residual no update is lost, and the value is the bf16 (or
// fp16) number at the goal, or, for lion, whose direction is never zero, the next.
//
// Trits: with an accumulator all are right, for what moves on without a gradient, a momentum, dies
// out within half a trit. That of lion never does, as its sign counts: it walks off, and back as
// soon as m has noticed. A sixteenth. Without an accumulator, a momentum or MicroAdam's window
// flips by chance what was right already, and rates at the end are too low to repair all of it. An
// eighth. Likewise where an accumulator is shared, as a momentum goes on after a flip, and uses up
// what others wait for: of 16 weights one may have been passed over all the time, and be at -1
// with a goal of 1. Nothing is farther away, so of shared16 no worst distance is asked.
//
// ternary_master: all trits right; their common gamma moves by the mean of all updates, of which
// zeros get none.
Distance target_of(RuleKind rule, FormatKind kind) {
  const double gridless = 2.0 * left_over(1.0);
  switch (kind) {
    case FormatKind::kTernaryMaster: {
      const std::vector<float>& goal = goals(kind, kShape);
      const auto zeros = std::count(goal.begin(), goal.end(), 0.0f);
      const double size = static_cast<double>(kShape.size());
      const double gamma = left_over(1.0 - static_cast<double>(zeros) / size);
      return {gamma, gamma, 0.0};
    }
    case FormatKind::kTernary:
    case FormatKind::kLatent8:
    case FormatKind::kLatent6:
    case FormatKind::kLatent5:
    case FormatKind::kLatent4:
      if (rule != RuleKind::kLion) return {0.0, 0.0, 0.0};
      return {1.0, 0.25, 1.0 / 16.0};
    case FormatKind::kTrits:
    case FormatKind::kShared4:
    case FormatKind::kShared8:
      return {1.0, std::sqrt(1.0 / 8.0), 1.0 / 8.0};
    case FormatKind::kShared16:
      return {std::numeric_limits<double>::infinity(), std::sqrt(1.0 / 8.0), 1.0 / 8.0};
    case FormatKind::kSplit24:
    case FormatKind::kSplit32:
    case FormatKind::kScale16:
      return {gridless + level(kind), gridless, 0.0};
    default:
      // Four levels of int4 are more than half a trit, but few may be as far.
      return {gridless + 4.0 * level(kind), gridless + 1.5 * level(kind),
              kind == FormatKind::kInt4 ? 1.0 / 64.0 : 0.0};
  }
}

// Trains; half-way, everything is saved and loaded into fresh objects, and both go on with the same
// bits, and come as near as `target` says; no farther than they were if it says nothing.
void train_and_resume(const FormatSpec& spec, const GroupSpec& group,
                      const std::optional<Distance>& target, const Shape& shape = kShape) {
  const std::int64_t before = ledger::live(Category::kMoments);
  Single single(shape, spec, group, kSteps), resumed(shape, spec, group, kSteps);
  CHECK(ledger::live(Category::kMoments) - before ==
        2 * Optimizer::state_bytes(single.w().spec(), group));
  const Distance wanted = target.value_or(distance(single));
  for (int t = 0; t < kSteps / 2; ++t) single.step(gradient(single));
  save_and_load(single, resumed);
  for (int t = kSteps / 2; t < kSteps; ++t) {
    single.step(gradient(single));
    resumed.step(gradient(resumed));
  }
  CHECK(all_bytes(resumed.w().storage()) == all_bytes(single.w().storage()));
  CHECK(resumed.state() == single.state());
  const Distance reached = distance(single);
  CHECK(reached.worst <= wanted.worst);
  CHECK(reached.typical <= wanted.typical);
  CHECK(reached.wrong <= wanted.wrong);
}

// Every rule, and those that can have a momentum with it.
std::vector<GroupSpec> every_group() {
  std::vector<GroupSpec> groups;
  for (RuleKind rule : kAllRules) groups.push_back(group_of(rule));
  for (RuleKind rule : {RuleKind::kSgd, RuleKind::kSgdw}) {
    for (bool nesterov : {false, true}) {
      groups.push_back(group_of(rule));
      groups.back().rule.momentum = 0.9;
      groups.back().rule.nesterov = nesterov;
    }
  }
  groups.push_back(group_of(RuleKind::kNormalized));
  groups.back().rule.momentum = 0.5;
  return groups;
}

void capture_and_train(const FormatSpec& spec, const GroupSpec& group,
                       const std::optional<Distance>& target, const Shape& shape = kShape) {
  CAPTURE(std::string(rule_name(group.rule.kind)));
  CAPTURE(group.rule.momentum);
  CAPTURE(group.rule.nesterov);
  CAPTURE(std::string(format_name(spec.kind)));
  CAPTURE(static_cast<int>(spec.flips.on_flip));
  CAPTURE(static_cast<int>(spec.flips.transition));
  train_and_resume(spec, group, target, shape);
}

}  // namespace

TEST_CASE("rules x formats: every pair learns the toy, and goes on with the same bits") {
  for (const GroupSpec& group : every_group()) {
    for (FormatKind kind : formats_for(kWeight | kScale)) {
      GroupSpec own = group;
      // The rates of a run add up to 7.5 trits, of which a flip takes half a one: 15 flips of a
      // group. Of 16 trits four ninths have to flip once, two ninths twice: 14 flips.
      if (kind == FormatKind::kShared16) own.lr *= 2.0;
      capture_and_train(format(kind), own, target_of(group.rule.kind, kind));
    }
  }
}

// Small updates are lost where a format has no residual, or one of whole levels. Rates are such
// that half a level is not much, but for bare trits, of which none moves.
TEST_CASE("rules x formats: rounded to nearest, every pair goes on with the same bits") {
  for (GroupSpec group : every_group()) {
    group.lr = 0.15;
    for (FormatKind kind : formats_for(kWeight)) {
      capture_and_train(format(kind, Rounding::kNearest), group, std::nullopt);
    }
    group.lr = 0.05;
    capture_and_train(format(FormatKind::kSplit24, Rounding::kNearest), group,
                      target_of(group.rule.kind, FormatKind::kSplit24));
  }
}

// Rows that are updated in one pass, but for the steps that are watched, at most every other one.
TEST_CASE("rules x formats: flash formats learn the toy, and go on with the same bits") {
  for (GroupSpec group : every_group()) {
    group.m = format(FormatKind::kCompanded8, Rounding::kNearest);
    group.v = format(FormatKind::kRoot8, Rounding::kNearest);
    capture_and_train(format(FormatKind::kSplit24, Rounding::kNearest), group,
                      target_of(group.rule.kind, FormatKind::kSplit24), {12, 96});
  }
}

// Trits that only change sign never come back to zero; with the other policies all trits become
// right, but for lion's (see target_of).
TEST_CASE("rules x formats: policies of flips go on with the same bits") {
  FormatSpec reset = format(FormatKind::kTernary), binary = reset, pushed = reset;
  reset.flips.on_flip = OnFlip::kReset;
  binary.flips.transition = Transition::kSetSign;
  pushed.flips.hysteresis = 5;
  for (const GroupSpec& group : every_group()) {
    std::optional<Distance> all_right;
    if (group.rule.kind != RuleKind::kLion) all_right.emplace();
    capture_and_train(reset, group, all_right);
    capture_and_train(pushed, group, all_right);
    capture_and_train(binary, group, std::nullopt);
  }
}

TEST_CASE(
    "rules x moments: every format of moments learns the toy, and goes on with the same bits") {
  struct Tested {
    RuleKind rule;
    double momentum;
  };
  // normalized twice: one that keeps m, and one that does not.
  for (const Tested& tested :
       {Tested{RuleKind::kSgd, 0.9}, Tested{RuleKind::kAdamw, 0.0}, Tested{RuleKind::kLion, 0.0},
        Tested{RuleKind::kNormalized, 0.0}, Tested{RuleKind::kNormalized, 0.5}}) {
    for (FormatKind m : formats_for(kM)) {
      for (FormatKind v : formats_for(kV | kSumsOfV)) {
        for (FormatKind weights : {FormatKind::kLatent8, FormatKind::kFp32}) {
          CAPTURE(std::string(rule_name(tested.rule)));
          CAPTURE(tested.momentum);
          CAPTURE(std::string(format_name(m)));
          CAPTURE(std::string(format_name(v)));
          CAPTURE(std::string(format_name(weights)));
          GroupSpec group = group_of(tested.rule);
          group.rule.momentum = tested.momentum;
          group.m = format(m);
          group.v = format(v);
          Distance target = target_of(tested.rule, weights);
          // A heavy ball swings while lr > (1 - sqrt(.9))^2 = .0026, which is for 256 of 300 steps,
          // and shrinks by sqrt(.9) in each: from 2 to 3e-6, or, as its speed counts too, a few
          // times that. Without its momentum, sgd would leave 1e-3.
          if (tested.rule == RuleKind::kSgd && weights == FormatKind::kFp32) target.worst = 1e-5;
          train_and_resume(format(weights), group, target);
        }
      }
    }
  }
}

// Every rule in every form on every format. The format of the momentum and the rounding take turns,
// such that every two of the five meet: all 750 together took the longest of all tests.
TEST_CASE("rules x formats: eco on every format without a residual") {
  constexpr std::array kFormats = {FormatKind::kBf16, FormatKind::kFp8, FormatKind::kInt8,
                                   FormatKind::kInt4, FormatKind::kTrits};
  constexpr std::array kRules = {RuleKind::kSgd, RuleKind::kSgdw, RuleKind::kAdam, RuleKind::kAdamw,
                                 RuleKind::kNormalized};
  constexpr std::array kForms = {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled};
  const std::vector<FormatKind> momenta = formats_for(kM);
  CHECK(momenta.size() == 5);  // with which they do meet
  for (std::size_t k = 0; k < kFormats.size(); ++k) {
    for (std::size_t r = 0; r < kRules.size(); ++r) {
      for (std::size_t f = 0; f < kForms.size(); ++f) {
        const FormatKind kind = kFormats[k], m = momenta[(k + 2 * r + f) % momenta.size()];
        const RuleKind rule = kRules[r];
        const bool nearest = (k + r / 2 + f) % 2 == 0;
        CAPTURE(std::string(rule_name(rule)));
        CAPTURE(std::string(format_name(kind)));
        CAPTURE(std::string(format_name(m)));
        CAPTURE(f);
        CAPTURE(nearest);
        GroupSpec group = group_of(rule);
        group.rule.momentum = group.rule.beta1 = 0.3;
        group.rule.dampening = 0.3;
        group.schedule.final = 0.1;
        group.eco = kForms[f];
        group.m = format(m);
        if (rule == RuleKind::kNormalized) group.v = format(FormatKind::kScalar);
        Distance target = target_of(rule, kind);
        // Adam's v forgets, so the error in m, which is in units of its root, grows; a trit that
        // was right goes wrong for as long as its new gradient needs to bring it back.
        if (kind == FormatKind::kTrits) target.wrong = 1.0 / 6.0;
        if (kind == FormatKind::kTrits) target.typical = std::sqrt(1.0 / 6.0);
        const Rounding rounding = nearest ? Rounding::kNearest : Rounding::kStochastic;
        train_and_resume(format(kind, rounding), group, target);
      }
    }
  }
}

// Trains by sgd with momentum towards goals off the grid, rounding by chance. The largest distance,
// in levels of the format, from weights with the same gradients and no rounding.
double strays(FormatKind kind, EcoForm form, double beta) {
  GroupSpec group = group_of(RuleKind::kSgd);
  group.rule.momentum = group.rule.dampening = beta;
  group.schedule.kind = Schedule::Kind::kConstant;
  group.eco = form;
  Single single(kShape, format(kind), group, kSteps);
  const std::vector<float> goal = numbers(kShape.size(), 78);
  std::vector<double> w = decoded(single.w().storage());
  std::vector<double> exact = w, momentum(w.size(), 0.0);
  double worst = 0.0, largest = 1.0;
  for (int t = 0; t < kSteps; ++t) {
    std::vector<float> grad;
    for (std::size_t i = 0; i < w.size(); ++i) {
      grad.push_back(static_cast<float>(w[i]) - 0.5f * goal[i]);
      momentum[i] = beta * momentum[i] + (1.0 - beta) * static_cast<double>(grad[i]);
      exact[i] -= group.lr * momentum[i];
    }
    single.step(grad);
    w = decoded(single.w().storage());
    for (std::size_t i = 0; i < w.size(); ++i) {
      worst = std::max(worst, std::abs(w[i] - exact[i]));
      largest = std::max(largest, std::abs(w[i]));
    }
  }
  return worst / (kind == FormatKind::kTrits ? 1.0 : level(kind) * largest);
}

// With m carrying x of errors, w - exact = y = lr beta / (1 - beta) x. A step that rounds E away
// makes y of it: beta y - E (put alpha of eco.h in). As E is below a level, y is below
// 1 / (1 - beta) levels, however long the run. kLrAware gives 1 / beta instead of 1 / beta - 1 of
// the first error, so exact is off by beta / (1 - beta) levels at most. Without ECO the errors of
// chance add up: 300 steps with a variance of lr |g| ~ .05 / 2 levels^2 or more make a spread of
// 2.7, and the largest of 377 weights lies further (measured: 4.9 to 11.5; with ECO .6 to 1.4).
TEST_CASE("rules x formats: rounding by chance leads weights astray, and eco holds them") {
  constexpr double kBeta = 0.3;
  for (FormatKind kind : {FormatKind::kBf16, FormatKind::kFp8, FormatKind::kInt8, FormatKind::kInt4,
                          FormatKind::kTrits}) {
    CAPTURE(std::string(format_name(kind)));
    CHECK(strays(kind, EcoForm::kPublished, kBeta) <= 1.0 / (1.0 - kBeta));
    CHECK(strays(kind, EcoForm::kRescaled, kBeta) <= 1.0 / (1.0 - kBeta));
    CHECK(strays(kind, EcoForm::kLrAware, kBeta) <= (1.0 + kBeta) / (1.0 - kBeta));
    CHECK(strays(kind, EcoForm::kOff, kBeta) > 2.0 / (1.0 - kBeta));
  }
}

}  // namespace tritgrad::test::test_rule_formats
