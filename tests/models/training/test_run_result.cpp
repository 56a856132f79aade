// Results of runs as JSON and back.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/json_keys.h"
#include "tests/support/sample_runs.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_run_result {
namespace {

TEST_CASE("run result: JSON has exactly the promised keys and values") {
  const nlohmann::json json =
      nlohmann::json::parse(to_json(make_run("latent8", 7, 0.985, kLatent)));
  CHECK(keys_of(json) == kRunKeys);
  CHECK(keys_of(json["bytes_per_parameter"]) ==
        std::set<std::string>{"weights", "scales", "residual", "moments", "gradients", "total"});
  CHECK(json["seed"] == 7);
  CHECK(json["test_accuracy"] == 0.985);
  CHECK(json["val_accuracy"].is_null());
  CHECK(json["bytes_per_parameter"]["total"] == kLatent.total());
  CHECK(json["curve"].size() == 2);
  CHECK(json["curve"][1]["val_accuracy"] == 0.97);
}

TEST_CASE("run result: folds and their spread appear only for cross-validated runs") {
  RunResult run = make_run("latent8", 1, 0.96, kLatent);
  run.folds = 5;
  run.test_score_std = 0.02;
  const nlohmann::json json = nlohmann::json::parse(to_json(run));
  CHECK(json["folds"] == 5);
  CHECK(json["test_accuracy_std"] == 0.02);
}

TEST_CASE("run result: numbers that do not exist are null, and the seed keeps its 64 bits") {
  RunResult run = make_run("naive", std::numeric_limits<std::uint64_t>::max(), kNan, kLatent);
  run.train_loss = kInfinity;
  run.seconds = kNan;
  run.bytes_per_parameter.moments = kNan;
  run.curve = {{1, kNan, -kInfinity, kNan}};
  run.data = "bad \xff\"\n";
  const std::string text = to_json(run);
  CHECK_FALSE(says_nan(text));
  CHECK_FALSE(contains(text, "\n"));
  const nlohmann::json json = nlohmann::json::parse(text);
  CHECK(json["test_accuracy"].is_null());
  CHECK(json["train_loss"].is_null());
  CHECK(json["bytes_per_parameter"]["total"].is_null());
  CHECK(json["curve"][0]["train_loss"].is_null());
  CHECK(json["seed"] == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("run result: summaries say what was done to pixels and labels") {
  RunResult run;
  CHECK(pixel_words(run).empty());
  CHECK(label_words(run).empty());
  run.pixels = "sqrt";
  run.label_smoothing = 0.1;
  CHECK(pixel_words(run) == "square roots of pixels");
  CHECK(label_words(run) == "labels smoothed by 0.1");
}

TEST_CASE("run result: what is written is read back exactly") {
  RunResult run =
      make_run("latent8", std::numeric_limits<std::uint64_t>::max(), 1.0 / 3.0, kLatent);
  run.time = {0.1, 1e-300, 3.0, 0.7, 0.2};
  run.val_score = 0.1 + 0.2;
  run.movable_fraction = 0.999999999999999;
  run.skipped_updates = 3;
  run.warnings = {"no trit flipped", "\"x\""};
  run.folds = 5;
  run.test_score_std = 0.02;
  run.diverged = "the loss is inf at step 3";
  run.cached = true;
  run.overrides = {"weight.lr=0.05", "name=\"x\""};
  run.augment = "shift=2,flip";
  run.label_smoothing = 0.1;
  run.pixels = "sqrt";
  run.curve.push_back({3, 1e-17, 1, std::nullopt});
  const std::string text = to_json(run);
  CHECK(to_json(run_from_json(text)) == text);
  const RunResult back = run_from_json(text);
  CHECK(back.seed == run.seed);
  CHECK(*back.test_score == *run.test_score);
  CHECK(back.time.batches == 1e-300);
  CHECK(back.time.saving == 0.2);
  CHECK(back.bytes_per_parameter.total() == run.bytes_per_parameter.total());
  CHECK(back.curve.size() == 3);
  CHECK_FALSE(back.curve[2].val_score);
  CHECK(back.diverged == run.diverged);
  CHECK(back.cached);
  CHECK(back.warnings == run.warnings);
  CHECK(back.overrides == run.overrides);
  CHECK(back.augment == run.augment);
  CHECK(back.label_smoothing == run.label_smoothing);
  CHECK(back.pixels == run.pixels);

  run = make_run("latent8", 1, kNan, kLatent);
  run.train_loss = kInfinity;
  const RunResult odd = run_from_json(to_json(run));
  CHECK_FALSE(odd.test_score);
  CHECK(std::isnan(odd.train_loss));
  CHECK_FALSE(odd.cached);
  CHECK(odd.diverged.empty());
  CHECK(odd.overrides.empty());
  CHECK(odd.augment.empty());
  CHECK(odd.label_smoothing == 0.0);
  CHECK(odd.pixels == "linear");
}

TEST_CASE("run result: text that is no result is refused with the key") {
  const nlohmann::json good = nlohmann::json::parse(to_json(two_recipes()[0]));
  for (const auto& item : good.items()) {
    CAPTURE(item.key());
    nlohmann::json bad = good;
    bad.erase(item.key());
    const std::string missing = refusal([&] { run_from_json(bad.dump()); });
    // Results of older programs lack these.
    const std::set<std::string> younger{"warnings", "optimizer_sha256", "data_bytes"};
    if (younger.contains(item.key())) {
      CHECK(missing.empty());
    } else {
      CHECK(contains(missing, "'" + item.key() + "' is missing"));
    }
    bad[item.key()] = nlohmann::json::array({nlohmann::json::array({"x"})});
    CHECK(contains(refusal([&] { run_from_json(bad.dump()); }), "run result: '"));
    if (!good[item.key()].is_number_integer()) continue;
    for (const nlohmann::json& number : {nlohmann::json(1e95), nlohmann::json(true)}) {
      bad[item.key()] = number;
      const std::string said = refusal([&] { run_from_json(bad.dump()); });
      CHECK((said.empty() || contains(said, "has the wrong type")));
    }
  }
  nlohmann::json halved = good;
  halved["epochs"] = 0.5;
  CHECK(refusal([&] { run_from_json(halved.dump()); }) ==
        "run result: 'epochs' has the wrong type");
  CHECK(contains(refusal([] { run_from_json("[]"); }), "no JSON object"));
  CHECK(contains(refusal([] { run_from_json("{"); }), "no JSON object"));
}

}  // namespace
}  // namespace tritgrad::test::test_run_result
