// Who is warned that rounding to nearest loses all updates, and who is not.
#include "engine/open_dataset.h"
#include "tests/single.h"
#include "tools/stall.h"
#include "tools/train.h"

namespace tritgrad::test {
namespace {

struct Verdict {
  std::string first, second;  // warnings after half and after all of the steps
  double movable;
};

Verdict judge(const FormatSpec& format_spec, const GroupSpec& group, bool resumed = false) {
  constexpr std::uint32_t kSteps = 40;
  Single single({4, 50}, format_spec, group, kSteps);
  StallWatch stall(resumed);
  Verdict verdict;
  for (std::uint32_t t = 0; t < kSteps; ++t) {
    single.step(numbers(200, t));
    if (t == kSteps / 8) CHECK(stall.look(*single.optimizer).empty());  // too early to say
    if (t == kSteps / 2) verdict.first = stall.look(*single.optimizer);
  }
  verdict.second = stall.look(*single.optimizer);
  verdict.movable = stall.movable(*single.optimizer, single.store).value_or(-1.0);
  return verdict;
}

GroupSpec sgd(double lr) {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  group.lr = lr;
  return group;
}

}  // namespace

TEST_CASE("stall: updates below half a trit are told of, once") {
  const Verdict verdict = judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(0.4));
  CHECK(verdict.first.find("loses all updates of 'w': the largest so far, 0.4, moves none") !=
        std::string::npos);
  CHECK(verdict.second.empty());
  CHECK(verdict.movable == 0.0);
}

TEST_CASE("stall: the share is that of the elements that some update could move") {
  // Gradients are uniform on (-1, 1): with lr = .505 only those above .99 are large enough, one
  // in a hundred; in 40 steps, a third of the elements has had one.
  const Verdict few = judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(0.505));
  CHECK(few.first.empty());
  CHECK(few.movable > 0.1);
  CHECK(few.movable < 0.6);
  CHECK(judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(5.0)).movable == 1.0);
}

TEST_CASE("stall: chance, residuals and ECO carry every update; a resumed run is not judged") {
  GroupSpec eco = sgd(1e-3);
  eco.rule.momentum = eco.rule.dampening = 0.9;
  eco.eco = EcoForm::kPublished;
  const std::vector<Verdict> verdicts = {
      judge(format(FormatKind::kTrits, Rounding::kStochastic), sgd(1e-3)),
      judge(format(FormatKind::kLatent8, Rounding::kNearest), sgd(1e-3)),
      judge(format(FormatKind::kTrits, Rounding::kNearest), eco)};
  for (const Verdict& verdict : verdicts) {
    CHECK(verdict.first.empty());
    CHECK(verdict.second.empty());
    CHECK(verdict.movable == 1.0);
  }
  const Verdict resumed =
      judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(1e-3), /*resumed=*/true);
  CHECK(resumed.first.empty());
  CHECK(resumed.movable == -1.0);
}

TEST_CASE("stall: a run reports it") {
  TrainOptions options;
  options.recipe = "naive";
  options.overrides = {"weight.lr=0.01"};
  options.model = "mlp:16";
  options.epochs = 8;
  options.batch = 32;
  options.quiet = true;
  CHECK(train(open_dataset("iris", {}), options).movable_fraction.value() == 0.0);
  options.recipe = "eco";
  CHECK(train(open_dataset("iris", {}), options).movable_fraction.value() == 1.0);
}

}  // namespace tritgrad::test
