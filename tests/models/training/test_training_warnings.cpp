// Who is warned that rounding to nearest loses the updates, and who is not.
#include "engine/data/open_dataset.h"
#include "models/recipes/recipe.h"
#include "models/training/train.h"
#include "models/training/training_warnings.h"
#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_training_warnings {
namespace {

struct Verdict {
  std::string first, second;  // warnings after half and after all of the steps
  double movable;
  std::string at_end;
};

constexpr std::uint32_t kSteps = 40;

std::vector<float> uniform_gradient(std::uint32_t step) { return numbers(200, step); }

// Gives every `sharing` neighbours of a row a gradient one after the other, in two steps each.
auto gradients_in_turn(std::uint32_t sharing) {
  return [sharing](std::uint32_t step) {
    std::vector<float> gradient(200);
    for (std::uint32_t i = 0; i < 200; ++i) {
      if (i % 50 % sharing == step / 2 % sharing) gradient[i] = 1.0f;
    }
    return gradient;
  };
}

// Trits that begin as zeros can move either way, others may stand at an end of their range.
enum Start { kAnything, kZeros };

template <typename Gradient = std::vector<float> (*)(std::uint32_t)>
Verdict judge(const FormatSpec& format_spec, const GroupSpec& group, bool resumed = false,
              Gradient gradient = uniform_gradient, Start start = kAnything) {
  Single single({4, 50}, format_spec, group, kSteps);
  if (start == kZeros) encode_all(single.w().storage(), std::vector<float>(200));
  StallWarnings stall(resumed);
  Verdict verdict;
  for (std::uint32_t t = 0; t < kSteps; ++t) {
    single.step(gradient(t));
    if (t == kSteps / 8)
      CHECK(stall.warning(*single.optimizer, single.store).empty());  // too early
    if (t == kSteps / 2) verdict.first = stall.warning(*single.optimizer, single.store);
  }
  verdict.second = stall.warning(*single.optimizer, single.store);
  verdict.movable = stall.movable_fraction(*single.optimizer, single.store).value_or(-1.0);
  verdict.at_end =
      stall.warning_at_end(*single.optimizer, single.store, single.optimizer->take_flips().flips);
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

TEST_CASE("stall: the share is that of the elements that some update moved") {
  // Gradients are uniform on (-1, 1): with lr = .505 only those above 1 / 1.01 are large enough,
  // one in a hundred. In 40 steps a zero, as which all begin, has had one with the probability .33:
  // of 200 elements that many, and four standard deviations more or less.
  const Verdict few = judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(0.505), false,
                            uniform_gradient, kZeros);
  CHECK(few.first.empty());
  const double expected = 1.0 - std::pow(1.0 / 1.01, kSteps);
  const double deviation = std::sqrt(expected * (1.0 - expected) / 200.0);
  CHECK(std::abs(few.movable - expected) <= 4.0 * deviation);
  CHECK(judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(5.0)).movable == 1.0);
}

TEST_CASE("stall: a residual that rounds to nearest loses updates as well") {
  using enum FormatKind;
  for (FormatKind kind : {kBf16, kTernary, kLatent8, kLatent6, kLatent5, kLatent4, kShared4,
                          kShared16, kTrits, kInt8, kInt4, kFp8, kSplit24}) {
    CAPTURE(std::string(format_name(kind)));
    const Verdict lost = judge(format(kind, Rounding::kNearest), sgd(1e-10));
    CHECK(lost.first.find("loses all updates of 'w': the largest so far, 1e-10, moves none") !=
          std::string::npos);
    CHECK(lost.first.find("weight.rounding=stochastic") != std::string::npos);
    CHECK(lost.movable == 0.0);
    const Verdict kept = judge(format(kind, Rounding::kNearest), sgd(5.0));
    CHECK(kept.first.empty());
    CHECK(kept.second.empty());
    // Of weights that share an accumulator only its owner moves, see below.
    if (kind != kShared4 && kind != kShared16) CHECK(kept.movable == 1.0);
  }
  // Half a level of latent8 is .5 / 85 = .0059; gradients are below 1.
  CHECK(judge(format(kLatent8, Rounding::kNearest), sgd(0.0058)).movable == 0.0);
  CHECK(judge(format(kLatent8, Rounding::kNearest), sgd(0.0120)).movable > 0.9);
}

TEST_CASE("stall: an accumulator that neighbours share moves each of them in its turn") {
  // Rates of 5 trits are clipped to L levels. The first of two steps gives a zero the accumulator,
  // the second flips its trit and frees the accumulator for the next one: all have had it after 2 k
  // steps, 32 at most.
  static_assert(2 * 16 <= kSteps);
  for (const auto& [kind, sharing] :
       {std::pair(FormatKind::kShared4, 4u), std::pair(FormatKind::kShared8, 8u),
        std::pair(FormatKind::kShared16, 16u)}) {
    CAPTURE(sharing);
    const Verdict all = judge(format(kind, Rounding::kNearest), sgd(5.0), false,
                              gradients_in_turn(sharing), kZeros);
    CHECK(all.first.empty());
    CHECK(all.second.empty());
    CHECK(all.movable == 1.0);
  }
}

TEST_CASE("stall: what is as fine as fp32 is told of where next to nothing moves") {
  using enum FormatKind;
  for (FormatKind kind : {kFp32, kTernaryMaster, kSplit32}) {
    CAPTURE(std::string(format_name(kind)));
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {  // not theirs to choose
      const Verdict lost = judge(format(kind, rounding), sgd(1e-12));
      CHECK(lost.first.find("raise the learning rate") != std::string::npos);
      CHECK(lost.first.find("stochastic") == std::string::npos);
      CHECK(lost.movable < kStalledShare);
    }
    const Verdict kept = judge(format(kind), sgd(1e-3));
    CHECK(kept.first.empty());
    CHECK(kept.movable == 1.0);
  }
  // Half the distance of floats at w is at least |w| / 2^25, and updates are below 1e-9: only
  // weights below .0336, one in thirty, can move, and nothing moves them far.
  std::int64_t small = 0;
  Single start({4, 50}, format(kFp32), sgd(1e-9), kSteps);
  for (double w : decoded(start.w().storage())) small += std::abs(w) < 0.034;
  const Verdict few = judge(format(kFp32), sgd(1e-9));
  CHECK(few.movable > 0.0);
  CHECK(few.movable <= static_cast<double>(small) / 200.0);
  CHECK(small < 20);
}

TEST_CASE("stall: of a large matrix a sample is watched, from all columns, until all could move") {
  // Three blocks a row, 6120 in all. 4096 elements are pieces of 256 of them: every 24th would be
  // the first of its row each time, so every 25th is looked at.
  const Shape shape{2040, 3 * kBlock};
  const FormatSpec trits = format(FormatKind::kTrits, Rounding::kNearest);
  const std::int64_t before = ledger::live(Category::kWorkspace);
  Single single(shape, trits, sgd(1.0), 3);
  const auto held = [&] { return ledger::live(Category::kWorkspace) - before; };
  CHECK(held() > 45'000);
  CHECK(held() <= StalledUpdates::kMaxBytes);
  encode_all(single.w().storage(), std::vector<float>(static_cast<std::size_t>(shape.size())));
  const auto step = [&](std::int64_t columns_that_move) {
    std::vector<float> grad(static_cast<std::size_t>(shape.size()), 0.4f);
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      if (i % shape.cols() < columns_that_move) grad[static_cast<std::size_t>(i)] = 1.0f;
    }
    single.step(grad);
    return single.optimizer->movements().at(0).moved;
  };
  CHECK(step(0) == 0.0);
  // A third of the 245 pieces in the sample, and they may be one too many or too few.
  CHECK(step(kBlock) == doctest::Approx(1.0 / 3.0).epsilon(3.0 / 245.0));
  CHECK(step(shape.cols()) == 1.0);
  CHECK(held() == 0);
}

TEST_CASE("stall: at most 256 steps of a run are watched, and not much fewer") {
  constexpr std::int64_t kLong = 600;
  Single single({6, 100}, format(FormatKind::kTrits, Rounding::kNearest), sgd(1.0), kLong);
  encode_all(single.w().storage(), std::vector<float>(kLong));
  for (std::int64_t t = 0; t < kLong; ++t) {
    std::vector<float> grad(kLong, 0.4f);
    grad[static_cast<std::size_t>(t)] = 1.0f;  // one element can move, in every step another
    single.step(grad);
  }
  const double watched = std::round(single.optimizer->movements().at(0).moved * kLong);
  CHECK(watched <= 256);
  CHECK(watched > 128);
}

TEST_CASE("stall: the dense 8-bit recipes are told of with a rate too small, not with their own") {
  for (const char* name : {"flash-adamw", "flash-lion", "flash-sgd"}) {
    CAPTURE(name);
    const auto verdict = [&](const std::vector<std::string>& overrides) {
      const Recipe recipe = load_recipe(name, overrides);
      const Recipe::Group& weight = recipe.group(Role::kWeight);
      return judge(weight.format, weight.update);
    };
    const Verdict lost = verdict({"weight.lr=1e-10"});
    CHECK(lost.first.find("format split24") != std::string::npos);
    CHECK(lost.first.find("a format with a residual") == std::string::npos);  // it has one
    CHECK(lost.movable == 0.0);
    const Verdict own = verdict({});
    CHECK(own.first.empty());
    CHECK(own.second.empty());
    CHECK(own.movable == 1.0);
  }
}

TEST_CASE("stall: elements without updates have lost none") {
  const FormatSpec trits = format(FormatKind::kTrits, Rounding::kNearest);
  const auto half = [](std::uint32_t) {
    std::vector<float> grad(200, 0.0f);
    std::fill_n(grad.begin(), 100, 1.0f);
    return grad;
  };
  CHECK(judge(trits, sgd(1.0), false, half, kZeros).movable == 1.0);
  CHECK(judge(trits, sgd(0.4), false, half, kZeros).movable == 0.0);
  const auto none = [](std::uint32_t) { return std::vector<float>(200, 0.0f); };
  const Verdict verdict = judge(trits, sgd(1.0), false, none);
  CHECK(verdict.first.empty());
  CHECK(verdict.movable == 1.0);
}

TEST_CASE("stall: a learning rate of 0 is told of, however updates are rounded") {
  using enum FormatKind;
  GroupSpec eco = sgd(0.0);
  eco.rule.momentum = eco.rule.dampening = 0.9;
  eco.eco = EcoForm::kPublished;
  for (const Verdict& verdict :
       {judge(format(kTrits, Rounding::kNearest), sgd(0.0)), judge(format(kFp32), sgd(0.0)),
        judge(format(kLatent8, Rounding::kStochastic), sgd(0.0)),
        judge(format(kTrits, Rounding::kNearest), eco)}) {
    CHECK(verdict.first == "the learning rate of the weights is 0: none of them moves");
    CHECK(verdict.second.empty());
    CHECK(verdict.movable == 0.0);
  }
  // A schedule that begins or ends at 0 is no such rate.
  GroupSpec scheduled = sgd(5.0);
  scheduled.schedule.kind = Schedule::Kind::kLinear;
  scheduled.schedule.warmup = 0.2;
  const Verdict verdict = judge(format(kTrits, Rounding::kNearest), scheduled);
  CHECK(verdict.first.empty());
  CHECK(verdict.second.empty());
  CHECK(verdict.movable == 1.0);
}

TEST_CASE("stall: the matrix that rests is named where others move") {
  ParameterStore store;
  const Initial initial{Initial::Kind::kUniform, 1.0f};
  for (const char* name : {"a", "b", "c"}) {
    store.add({name, Role::kWeight, {4, 50}, format(FormatKind::kFp32), initial}, 1);
  }
  store.add({"norm", Role::kNorm, {50}, format(FormatKind::kFp32), initial}, 1);
  store.keep_gradients();
  const auto warning_for = [&](const std::string& resting, double& movable) {
    Optimizer optimizer(
        store,
        [&](const ParameterSpec& spec) {
          return sgd(resting.find(spec.name) != std::string::npos ? 0.0 : 1e-2);
        },
        1, 5);
    for (Parameter& parameter : store) {
      std::fill_n(parameter.grad.data, parameter.shape().size(), 1.0f);
    }
    optimizer.step();
    optimizer.advance();
    StallWarnings stall(false);
    movable = stall.movable_fraction(optimizer, store).value();
    return stall.warning(optimizer, store);
  };
  double movable = 0.0;
  CHECK(warning_for("b", movable) == "the learning rate of 'b' is 0: no weight there moves");
  CHECK(movable == doctest::Approx(2.0 / 3.0));
  CHECK(warning_for("bc", movable) ==
        "the learning rate of 'b' and of 1 more is 0: no weight there moves");
  CHECK(warning_for("norm", movable).empty());
  CHECK(movable == 1.0);
}

TEST_CASE("stall: one weight in two hundred that moves does not train a matrix") {
  const auto one = [](std::uint32_t) {
    std::vector<float> grad(200, 0.4f);
    grad[7] = 1.0f;
    return grad;
  };
  const Verdict verdict =
      judge(format(FormatKind::kTrits, Rounding::kNearest), sgd(1.0), false, one, kZeros);
  CHECK(verdict.first.find("loses nearly all updates of 'w': the largest so far, 1, moves 0.5 %") !=
        std::string::npos);
  CHECK(verdict.movable == doctest::Approx(1.0 / 200.0));
}

TEST_CASE("stall: chance and ECO carry small updates; a resumed run is not judged") {
  GroupSpec eco = sgd(1e-3);
  eco.rule.momentum = eco.rule.dampening = 0.9;
  eco.eco = EcoForm::kPublished;
  const std::vector<Verdict> verdicts = {
      judge(format(FormatKind::kTrits, Rounding::kStochastic), sgd(1e-3)),
      judge(format(FormatKind::kLatent8, Rounding::kStochastic), sgd(1e-6)),
      judge(format(FormatKind::kSplit24, Rounding::kStochastic), sgd(1e-6)),
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

TEST_CASE("stall: updates too small for chance and for ECO are told of") {
  using enum FormatKind;
  // Gradients are below 1. Noise of 16 bits carries 2^-17 of a level and more: 7.6e-6 of a trit,
  // 9e-8 where it has 85 levels.
  CHECK(judge(format(kTrits), sgd(7.6e-6)).movable == 0.0);
  CHECK(judge(format(kTrits), sgd(9e-6)).movable == 1.0);
  CHECK(judge(format(kLatent8), sgd(8.9e-8)).movable == 0.0);
  CHECK(judge(format(kLatent8), sgd(1e-7)).movable == 1.0);
  GroupSpec eco = sgd(1e-44);
  eco.rule.momentum = eco.rule.dampening = 0.9;
  eco.eco = EcoForm::kPublished;
  // A zero of int8 and int4 is moved by whatever fp32 holds.
  for (FormatKind kind : {kBf16, kTernary, kLatent8, kLatent6, kLatent5, kLatent4, kShared4,
                          kShared16, kTrits, kFp8, kSplit24}) {
    CAPTURE(std::string(format_name(kind)));
    const Verdict lost = judge(format(kind), sgd(1e-44));
    CHECK(lost.first.find("rounding loses all updates of 'w'") != std::string::npos);
    CHECK(lost.first.ends_with("; raise the learning rate"));
    CHECK(lost.movable == 0.0);
    CHECK(judge(format(kind), sgd(1e-3)).movable == 1.0);
  }
  // Of ECO the rates below 1e-20 are no steps at all, and those above move a trit that is zero.
  eco.lr = 1e-3;
  CHECK(judge(format(kInt4), eco).movable == 1.0);
  const auto nothing = [](std::uint32_t) { return std::vector<float>(200, 0.0f); };
  CHECK(judge(format(kTrits), sgd(1.0), false, nothing).movable == 1.0);
}

TEST_CASE("stall: floats near zero, which anything moves, do not make a matrix movable") {
  // bf16 of 2e-5 and less can be moved by 1e-12 and chance, the others, of 0.1 and more, cannot.
  const auto verdict = [](std::int64_t near_zero) {
    Single single({4, 50}, format(FormatKind::kBf16), sgd(1e-12), 1);
    std::vector<float> weights(200, 0.25f);
    std::fill_n(weights.begin(), near_zero, 0x1p-20f);
    encode_all(single.w().storage(), weights);
    single.step(std::vector<float>(200, 1.0f));
    StallWarnings stall(false);
    return std::pair{stall.warning(*single.optimizer, single.store),
                     stall.movable_fraction(*single.optimizer, single.store).value()};
  };
  CHECK(verdict(0).second == 0.0);
  CHECK(verdict(1).second == doctest::Approx(1.0 / 200.0));
  CHECK(contains(verdict(1).first,
                 "loses nearly all updates of 'w': the largest so far, 1e-12, "
                 "moves 0.5 % of its weights"));
  CHECK(verdict(2).second == 1.0);
  CHECK(verdict(2).first.empty());
}

TEST_CASE("stall: a run without a flip is told of at its end, unless it was told of before") {
  using enum FormatKind;
  GroupSpec eco = sgd(1e-3);
  eco.rule.momentum = eco.rule.dampening = 0.9;
  eco.eco = EcoForm::kPublished;
  CHECK(judge(format(kTrits, Rounding::kNearest), eco).at_end ==
        "no trit of 'w' flipped in 40 steps, so that the ternary weights end as they began; raise "
        "the learning rate or train longer");
  CHECK(!judge(format(kLatent8), sgd(1e-6)).at_end.empty());
  CHECK(!judge(format(kLatent8), sgd(1e-6), /*resumed=*/true).at_end.empty());
  CHECK(judge(format(kLatent8), sgd(1.0)).at_end.empty());                    // trains
  CHECK(judge(format(kTrits, Rounding::kNearest), sgd(0.4)).at_end.empty());  // warned of
  CHECK(judge(format(kTrits, Rounding::kNearest), sgd(0.0)).at_end.empty());
  for (FormatKind dense : {kFp32, kTernaryMaster, kSplit24}) {
    CHECK(judge(format(dense), sgd(1e-3)).at_end.empty());
  }
  // Before its end a run may still flip.
  Single single({4, 50}, format(kLatent8), sgd(1e-6), 2);
  const StallWarnings stall(false);
  single.step(uniform_gradient(0));
  CHECK(stall.warning_at_end(*single.optimizer, single.store, 0).empty());
  single.step(uniform_gradient(1));
  CHECK(!stall.warning_at_end(*single.optimizer, single.store, 0).empty());
}

TEST_CASE("stall: skipped steps are told of with their share") {
  CHECK(warning_of_skips(298, 300, 0.5) ==
        "updates of 298 of 300 steps (99.3 %) were left out, as a loss or a gradient was not "
        "finite; lower the learning rate and check the data");
  CHECK(warning_of_skips(0, 300, 0.5).empty());
  CHECK(warning_of_skips(29, 300, 0.5).empty());
  CHECK(!warning_of_skips(30, 300, 0.5).empty());
  CHECK(contains(warning_of_skips(5, 300, std::nan("")), "(1.7 %)"));
  CHECK(contains(warning_of_skips(5, 300, std::nan("")),
                 "not finite, all of the last epoch among them; lower"));
}

TEST_CASE("fit: a regression that is no better than a mean says so, with what there is to do") {
  CHECK(warning_of_fit(0.9, {}).empty());
  CHECK(warning_of_fit(0.9, 0.0).empty());
  CHECK(warning_of_fit(std::nan(""), {}).empty());  // what was left out says more
  CHECK(warning_of_fit(0.1, -0.35) ==
        "the test rows are predicted worse than by their mean (R² -0.35), though those to train "
        "on are not; give more rows, a smaller network or fewer epochs, and check the labels");
  CHECK(warning_of_fit(12.0, -10.0) ==
        "the rows to train on are predicted no better than by their mean (loss 12, that of the "
        "mean is 1); lower the learning rate, train longer, or check the labels");
  TrainOptions options;
  options.data = "diabetes";
  options.model = "mlp:16";
  options.recipe = "fp32";
  options.epochs = 10;
  options.batch = 32;
  CHECK(train(open_dataset("diabetes"), options).warnings.empty());
  // Decay of lr times 1 multiplies the weights by -1.5 in each of the 22 or 24 steps, which fp32
  // has room for.
  options.epochs = 2;
  options.overrides = {"weight.lr=2.5", "weight.weight_decay=1"};
  const RunResult wild = train(open_dataset("diabetes"), options);
  REQUIRE(wild.warnings.size() == 1);
  CHECK(contains(wild.warnings[0], "no better than by their mean (loss "));
}

TEST_CASE("stall: a run reports it") {
  TrainOptions options;
  options.recipe = "naive";
  options.overrides = {"weight.lr=0.01"};
  options.model = "mlp:16";
  options.epochs = 8;
  options.batch = 32;
  const RunResult naive = train(open_dataset("iris", {}), options);
  CHECK(naive.movable_fraction.value() == 0.0);
  REQUIRE(naive.warnings.size() == 1);
  CHECK(contains(naive.warnings[0], "rounding loses all updates of 'layers.0.weight'"));
  options.recipe = "eco";
  const RunResult eco = train(open_dataset("iris", {}), options);
  CHECK(eco.movable_fraction.value() == 1.0);
  CHECK(eco.flips_per_step == 0.0);
  REQUIRE(eco.warnings.size() == 1);
  CHECK(
      contains(eco.warnings[0], "no trit of 'layers.0.weight' and of 1 more flipped in 32 steps"));
  options.folds = 3;  // each says it of as many steps
  CHECK(train(open_dataset("iris", {}), options).warnings.size() == 1);
  options.folds = 0;
  options.recipe = "flash-adamw";
  options.overrides = {"weight.lr=1e-10"};
  CHECK(train(open_dataset("iris", {}), options).movable_fraction.value() == 0.0);
  options.overrides = {};
  const RunResult own = train(open_dataset("iris", {}), options);
  CHECK(own.movable_fraction.value() > 0.99);
  CHECK(own.warnings.empty());
}

}  // namespace tritgrad::test::test_training_warnings
