// Steps of which updates are left out, as a loss or a statistic is not finite.
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"
#include "ops/batch_norm.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_non_finite {
namespace {

// The first step moves every weight by 9e5, after which the loss of each batch overflows.
TrainOptions overflowing() {
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:16,16,16,16,16,16,16,16:norm=none";
  options.recipe = "fp32";
  options.overrides = {"weight.lr=9e5", "non_finite=skip"};
  options.epochs = 3;
  options.batch = 16;
  return options;
}

}  // namespace

TEST_CASE(
    "non-finite: a batch whose statistics are not finite leaves the running ones as they are") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kInf, -kInf, std::nanf(""), 3e38f}) {  // the variance of the last is inf
    CAPTURE(bad);
    ParameterStore store;
    const auto add = [&](const char* name, Role role, float start) {
      return &store.add({name, role, {2}, {}, {Initial::Kind::kConstant, start}}, 1);
    };
    const BatchNormParameters norm{add("gain", Role::kNorm, 1.0f), add("bias", Role::kNorm, 0.0f),
                                   add("mean", Role::kStatistic, 0.5f),
                                   add("var", Role::kStatistic, 2.0f)};
    Tape tape;
    const auto normalize = [&](std::vector<float> values) {
      tape.reset();
      batch_norm(tape, tape.constant({values.data(), {3, 2}}), norm);
    };
    normalize({1.0f, 2.0f, 3.0f, bad, 5.0f, -bad});
    CHECK(decoded(norm.running_var->storage()) == std::vector<double>{2.0, 2.0});
    if (bad != 3e38f) CHECK(decoded(norm.running_mean->storage()) == std::vector<double>{0.5, 0.5});
    normalize({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
    CHECK(decoded(norm.running_var->storage())[0] == doctest::Approx(2.0 + 0.1 * (4.0 - 2.0)));
  }
}

TEST_CASE("non-finite: an epoch all of whose steps were left out has no loss") {
  const Dataset iris = open_dataset("iris", {});
  const RunResult result = train(iris, overflowing());
  REQUIRE(result.skipped_updates == result.steps - 1);
  CHECK(std::isfinite(result.curve.at(0).train_loss));
  CHECK(std::isnan(result.curve.at(1).train_loss));
  CHECK(std::isnan(result.curve.at(2).train_score));
  CHECK(std::isnan(result.train_loss));
  REQUIRE(result.warnings.size() == 1);
  CHECK(
      contains(result.warnings[0], concat("updates of ", result.steps - 1, " of ", result.steps)));
  const auto json = nlohmann::json::parse(to_json(result));
  CHECK(json["train_loss"].is_null());
  CHECK(json["curve"][1]["train_loss"].is_null());
  CHECK(json["curve"][0]["train_loss"].is_number());
}

TEST_CASE(
    "non-finite: a resumed run counts what was left out before it, and goes on without a loss") {
  const TempDir folder;
  const Dataset iris = open_dataset("iris", {});
  const RunResult whole = train(iris, overflowing());
  TrainOptions first = overflowing();
  first.save = folder / "run.safetensors";
  first.stop_after = 2 * whole.steps / 3;
  const RunResult part = train(iris, first);
  REQUIRE(part.steps == first.stop_after);
  CHECK(part.skipped_updates == part.steps - 1);
  TrainOptions second = overflowing();
  second.resume = first.save;
  const RunResult resumed = train(iris, second);
  CHECK(resumed.skipped_updates == whole.skipped_updates);
  CHECK(resumed.weights_sha256 == whole.weights_sha256);
  REQUIRE(resumed.curve.size() == 3);
  CHECK(resumed.curve[0].train_loss == whole.curve[0].train_loss);
  CHECK(std::isnan(resumed.curve[1].train_loss));
}

}  // namespace tritgrad::test::test_non_finite
