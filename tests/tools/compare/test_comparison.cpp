// Comparisons: tuning, divergence, the cache of finished runs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/data/open_dataset.h"
#include "engine/files/atomic_file.h"
#include "engine/memory/parallel.h"
#include "models/training/training_state.h"
#include "tests/support/support_files.h"
#include "tools/compare/run_comparison.h"
#include "tools/report/system_info.h"

namespace tritgrad::test::test_comparison {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

ComparisonOptions quick(const std::vector<std::string>& recipes) {
  ComparisonOptions options;
  options.train.model = "mlp:8";
  options.train.epochs = 3;
  options.recipes = recipes;
  options.seeds = 2;
  return options;
}

// The comparison, and how many of its runs were trained rather than found.
struct Outcome {
  ComparisonRecord record;
  int trained = 0;
  int runs = 0;
  int not_kept = 0;
};

Outcome compared(const Dataset& dataset, const ComparisonOptions& options, const RunCache& cache) {
  Outcome outcome;
  outcome.record = run_comparison(dataset, options, cache, [&](const FinishedRun& finished) {
    ++outcome.runs;
    outcome.trained += finished.run.cached ? 0 : 1;
    outcome.not_kept += finished.not_kept.empty() ? 0 : 1;
  });
  return outcome;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("comparison: tuning picks the better rate on rows that are neither trained nor tested") {
  const Dataset iris = open_dataset("iris");
  ComparisonOptions options = quick({"fp32"});
  // Far too low: three epochs of it leave the network where it began, twice the rate is better.
  options.train.overrides = {"weight.lr=0.004", "continuous.lr=0.002"};
  options.train.epochs = 8;
  options.tune = 5;
  options.train.validation = 0.3;
  const ComparisonRecord record = compared(iris, options, RunCache("")).record;
  REQUIRE(record.tunings.size() == 1);
  const Tuning& tuning = record.tunings[0];
  REQUIRE(tuning.candidates.size() == 5);
  for (const TuningCandidate& candidate : tuning.candidates) {
    CHECK(candidate.lr == doctest::Approx(0.004 * candidate.factor));
    CHECK(*candidate.val_score <= *tuning.choice().val_score);
    // What was chosen is what training on the validation split says.
    TrainOptions trial = with_defaults(options.train, iris);
    trial.recipe = "fp32";
    trial.overrides.push_back(fmt::format("weight.lr={}", candidate.lr));
    CHECK(train(iris, trial).val_score == candidate.val_score);
  }
  CHECK(*tuning.candidates[0].val_score < *tuning.choice().val_score);
  REQUIRE(record.runs.size() == 2);
  for (const RunResult& run : record.runs) {
    CHECK(run.lr == doctest::Approx(tuning.choice().lr));
    CHECK_FALSE(run.val_score);  // trained on all training rows
    CHECK(run.test_score);
    CHECK(run.steps == 8 * 4);  // 120 rows in batches of 32
    CHECK(run.machine == describe_machine());
  }
  // What the page draws of rows held out is the chosen trial's.
  CHECK(tuning.choice().curve.size() == 8);
  CHECK(tuning.choice().curve.back().val_score == tuning.choice().val_score);
}

TEST_CASE("comparison: untuned, it is what train says of every recipe and seed") {
  const Dataset iris = open_dataset("iris");
  const ComparisonOptions options = quick({"votes", "master"});
  const Outcome outcome = compared(iris, options, RunCache(""));
  CHECK(outcome.runs == run_count(options));
  CHECK(outcome.record.tunings.empty());
  REQUIRE(outcome.record.runs.size() == 4);
  for (const RunResult& run : outcome.record.runs) {
    TrainOptions single = with_defaults(options.train, iris);
    single.recipe = run.recipe;
    single.seed = run.seed;
    CHECK(train(iris, single).weights_sha256 == run.weights_sha256);
  }
}

TEST_CASE("comparison: the baseline is the one asked for, else master, else the first recipe") {
  const Dataset iris = open_dataset("iris");
  ComparisonOptions options = quick({"votes", "latent8"});
  options.train.epochs = options.seeds = 1;
  CHECK(compared(iris, options, RunCache("")).record.baseline == "votes");
  options.baseline = "latent8";
  CHECK(compared(iris, options, RunCache("")).record.baseline == "latent8");
  options.recipes.push_back("master");
  options.baseline.clear();
  CHECK(compared(iris, options, RunCache("")).record.baseline == "master");
  options.baseline = "trits";
  CHECK_THROWS_WITH_AS(check_comparison(iris, options),
                       "--baseline: 'trits' is none of the recipes that are compared (votes, "
                       "latent8, master); name one of them, or add it to --recipes",
                       Error);
}

TEST_CASE("comparison: a recipe that diverges ends nothing, and is named") {
  const Dataset iris = open_dataset("iris");
  ComparisonOptions options = quick({});
  const TempDir folder;
  // Decay of lr times 1 multiplies the weights by 1e5 or more in each of the twelve steps.
  folder.write("wild.toml",
               "base = \"fp32\"\nname = \"wild\"\n[weight]\nlr = 2e5\nweight_decay = 1.0\n");
  options.recipes = {folder / "wild.toml", "master"};
  options.tune = 2;
  const RunCache cache(folder / "runs");
  for (const bool again : {false, true}) {  // what diverged is kept like any other result
    CAPTURE(again);
    const Outcome outcome = compared(iris, options, cache);
    CHECK(outcome.trained == (again ? 0 : run_count(options)));
    const ComparisonRecord& record = outcome.record;
    for (const TuningCandidate& candidate : record.tunings[0].candidates) {
      CHECK_FALSE(candidate.val_score);
    }
    CHECK(record.tunings[0].choice().factor == 1);
    REQUIRE(record.runs.size() == 4);
    CHECK(record.runs[0].recipe == "wild");
    CHECK(contains(record.runs[0].diverged, "step"));
    CHECK_FALSE(record.runs[0].test_score);
    CHECK(record.runs[2].recipe == "master");
    CHECK(record.runs[2].diverged.empty());
    const Json json = Json::parse(to_json({record}, "machine"))["comparisons"][0];
    CHECK(json["recipes"][1]["recipe"] == "wild");
    CHECK(json["recipes"][1]["diverged"] == 2);
    CHECK(json["recipes"][1]["accuracy_mean"].is_null());
    CHECK(json["recipes"][1]["tuning"]["candidates"][0]["diverged"] == true);
    CHECK(json["runs"][0].contains("cached") == again);
    CHECK(json["recipes"][1]["tuning"]["candidates"][0]["cached"] == again);
  }
}

TEST_CASE("comparison: one that was interrupted goes on where it was") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  const RunCache cache(folder / "runs");
  ComparisonOptions options = quick({"latent8", "master"});
  options.tune = 3;
  struct Interrupted {};
  int done = 0;
  const auto stop_at_six = [&](const FinishedRun&) {
    if (++done == 6) throw Interrupted();
  };
  CHECK_THROWS_AS(run_comparison(iris, options, cache, stop_at_six), Interrupted);
  const Outcome rest = compared(iris, options, cache);
  CHECK(rest.runs == 10);
  CHECK(rest.trained == 4);
  const Outcome again = compared(iris, options, cache);
  CHECK(again.trained == 0);
  const Outcome whole = compared(iris, options, RunCache(""));
  CHECK(whole.trained == 10);
  for (std::size_t i = 0; i < whole.record.runs.size(); ++i) {
    CHECK(again.record.runs[i].weights_sha256 == whole.record.runs[i].weights_sha256);
    CHECK(again.record.runs[i].test_score == whole.record.runs[i].test_score);
    // The time of the run that was made then.
    RunResult kept = again.record.runs[i];
    kept.cached = rest.record.runs[i].cached;
    CHECK(to_json(kept) == to_json(rest.record.runs[i]));
  }
  CHECK(again.record.seconds() == rest.record.seconds());
  // More seeds: only those are new.
  options.seeds = 3;
  CHECK(compared(iris, options, cache).trained == 2);
  CHECK(compared(iris, options, RunCache(folder / "runs", true)).trained == 12);
}

TEST_CASE("run cache: damaged and foreign entries are not believed, and are replaced") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  const RunCache cache(folder / "runs");
  ComparisonOptions options = quick({"fp32"});
  options.seeds = 1;
  CHECK(compared(iris, options, cache).trained == 1);
  const std::vector<fs::path> files = entries(folder / "runs");
  REQUIRE(files.size() == 1);
  const std::string good = read_text(files[0]);
  const Json entry = Json::parse(good);
  std::vector<std::string> bad = {"",        "{", "[]", "null", good.substr(0, good.size() / 2),
                                  "\xff\xfe"};
  for (const char* part : {"tritgrad.run", "key", "result", "xxh3"}) {
    Json less = entry;
    less.erase(part);
    bad.push_back(less.dump());
    less[part] = "something else";
    bad.push_back(less.dump());
  }
  Json worse = entry, better = entry;
  worse["result"].erase("curve");
  bad.push_back(worse.dump());
  better["result"]["test_accuracy"] = 1.0;
  bad.push_back(better.dump());
  for (const std::string& text : bad) {
    CAPTURE(text);
    write_text(files[0], text);
    CHECK(compared(iris, options, cache).trained == 1);
    CHECK(compared(iris, options, cache).trained == 0);
  }
  CHECK(entries(folder / "runs") == files);
  // A folder in its place cannot be replaced; the run itself is no worse for it.
  fs::remove(files[0]);
  fs::create_directory(files[0]);
  const Outcome outcome = compared(iris, options, cache);
  CHECK(outcome.trained == 1);
  CHECK(outcome.not_kept == 1);
}

TEST_CASE("run cache: what another comparison is writing is left to it, without a warning") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  const RunCache cache(folder / "runs");
  compared(iris, quick({"fp32"}), cache);
  const std::vector<fs::path> files = entries(folder / "runs");
  REQUIRE(!files.empty());
  const std::string kept = read_text(files[0]);
  const RunCache fresh(folder / "runs", true);
  {
    AtomicFile other(files[0]);
    CHECK(compared(iris, quick({"fp32"}), fresh).not_kept == 0);
    other.write(std::as_bytes(std::span(kept)));
    other.commit();
  }
  CHECK(read_text(files[0]) == kept);
}

TEST_CASE("run cache: a folder that cannot be made costs a note, not the result") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  folder.write("file", "");
  const Outcome outcome = compared(iris, quick({"fp32"}), RunCache(folder / "file/runs"));
  CHECK(outcome.not_kept == 2);
  CHECK(outcome.record.runs.size() == 2);
}

TEST_CASE("comparison: what would end it later is refused before it begins") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  folder.write("a.toml", "base = \"votes\"\nname = \"votes\"\n");
  const auto said = [&](const ComparisonOptions& options) {
    return refusal([&] { check_comparison(iris, options); });
  };
  CHECK(said(quick({"votes", "master"})).empty());
  CHECK(contains(said(quick({"votes", "votes"})), "'votes' is named twice"));
  CHECK(contains(said(quick({"votes", folder / "a.toml"})), "'votes' is named twice, by '"));
  CHECK(contains(said(quick({"vote"})), "did you mean 'votes'"));
  ComparisonOptions options = quick({"votes"});
  options.tune_epochs = 3;
  CHECK(contains(said(options), "--tune-epochs needs --tune"));
  options.tune = 3;
  CHECK(said(options).empty());
  options.train.folds = 5;
  CHECK(contains(said(options), "--folds"));
  options = quick({"votes"});
  options.train.model = "mlp:5-3";
  CHECK(contains(said(options), "4 features"));
  options = quick({"votes"});
  options.train.augment = "shift=1";
  CHECK(contains(said(options), "holds no images"));
  options = quick({"votes"});
  options.train.folds = 51;  // of 50 rows of each class
  CHECK(contains(said(options), "has only 50 rows"));
  options = quick({"votes"});
  options.train.validation = 0.001;  // of 120 training rows
  CHECK(contains(said(options), "leaves a part empty"));
  options.tune = 2;
  CHECK(contains(said(options), "leaves a part empty"));
  options = quick({"fp32", "votes"});
  options.train.micro_batches = 2;
  CHECK(contains(said(options), "recipe 'votes' releases each gradient"));
  options.train.micro_batches = 17;
  CHECK(contains(said(options), "a batch of 32 rows has at most 16 parts"));
}

TEST_CASE("comparison: expected work has all epochs, and convolutions at every pixel") {
  const Dataset digits = open_dataset("digits");  // 8 x 8 x 1, ten classes
  ComparisonOptions options = quick({"fp32", "votes"});
  options.seeds = 3;
  options.train.epochs = 6;
  options.tune = 2;
  options.tune_epochs = 2;
  options.train.model = "mlp:8";
  const ExpectedWork flat = expected_work(digits, options);
  CHECK(flat.runs == 2 * (2 + 3));
  CHECK(flat.epochs == 2 * (2 * 2 + 3 * 6));
  CHECK(flat.work == (64 * 8 + 8 * 10) * static_cast<double>(digits.rows));
  options.train.model = "conv:4,M,6";
  options.tune = 1;
  options.tune_epochs = 0;
  options.train.folds = 5;
  const ExpectedWork conv = expected_work(digits, options);
  CHECK(conv.epochs == 2 * 3 * 6);
  CHECK(conv.work ==
        (64 * 9 * 4 + 16 * 9 * 4 * 6 + 6 * 10) * 5.0 * static_cast<double>(digits.rows));
}

TEST_CASE("remaining time: each comparison by its own runs, or by work at the speed so far") {
  RemainingTime remaining;
  remaining.expect({4, 4 * 5, 10});
  remaining.expect({2, 2 * 5, 30});
  CHECK_FALSE(remaining.seconds_left());
  CHECK(remaining.text() == "0/6");
  remaining.finished(0, 5, 2.0);
  // Three more of 2 s, then two of three times the work.
  CHECK(*remaining.seconds_left() == doctest::Approx(3 * 2.0 + 2 * 6.0));
  CHECK(remaining.text() == "1/6, about 0:18 left");
  for (int i = 0; i < 3; ++i) remaining.finished(0, 5, 2.0);
  remaining.finished(1, 5, 100.0);
  CHECK(*remaining.seconds_left() == doctest::Approx(100.0));
  remaining.finished(1, 5, 50.0);
  CHECK(remaining.text() == "6/6");
}

TEST_CASE("remaining time: a short trial says what a whole run will take") {
  RemainingTime remaining;
  remaining.expect({3, 1 + 2 * 10, 1});
  remaining.finished(0, 1, 2.0);
  CHECK(*remaining.seconds_left() == doctest::Approx(2 * 10 * 2.0));
}

}  // namespace tritgrad::test::test_comparison
