// Classes of very different sizes: weights of the loss, balanced accuracy, the confusion table.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "engine/data/csv.h"
#include "engine/data/open_dataset.h"
#include "engine/random.h"
#include "models/training/confusion.h"
#include "models/training/evaluate.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"
#include "tests/support/thread_ranks.h"

namespace tritgrad::test::test_imbalance {
namespace {

// 1,000 rows, one in twenty of which is rare. Both classes are noise of unit range around centres
// half a unit apart, so that an accurate model takes nearly all rows for the common class.
Dataset uneven_noise() {
  std::string text = "x,y,class\n";
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const bool rare = i % 20 == 0;
    const double x = static_cast<double>(random_uniform({.seed = 7}, 2 * i));
    const double y = static_cast<double>(random_uniform({.seed = 7}, 2 * i + 1));
    text += concat(x + (rare ? 0.5 : 0.0), ",", y, ",", rare ? "rare" : "common", "\n");
  }
  return parse_csv(text, "noise.csv");
}

TrainOptions quick(Imbalance imbalance) {
  TrainOptions options;
  options.model = "mlp:16";
  options.recipe = "latent8";
  options.epochs = 10;
  options.batch = 32;
  options.imbalance = imbalance;
  return options;
}

TEST_CASE("imbalance: every class weighs alike, and the mean weight of a row is 1") {
  Dataset data;
  data.class_names = {"a", "b", "c", "none"};
  data.labels = {0, 0, 0, 0, 0, 0, 1, 1, 2, 1};
  const std::vector<std::int32_t> rows{0, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(class_weights(data, rows, Imbalance::kNone).empty());
  const std::vector<float> weights = class_weights(data, rows, Imbalance::kWeights);
  // Nine rows of three classes: 9 / (3 * 6), 9 / (3 * 2) and 9 / (3 * 1).
  CHECK(weights == std::vector<float>{0.5f, 1.5f, 3.0f, 0.0f});
}

TEST_CASE("imbalance: recall of each class, and their mean over those that have rows") {
  Confusion confusion({"a", "b", "c"});
  std::vector<float> logits{3, 1, 2, 1, 1, 0, 0, 2, 1, 0, 1, 5};
  confusion.add({logits.data(), {4, 3}}, std::vector<std::int32_t>{0, 0, 0, 1});
  CHECK(confusion.counts ==
        std::vector<std::vector<std::int64_t>>{{2, 1, 0}, {0, 0, 1}, {0, 0, 0}});
  CHECK(confusion.recall(0) == doctest::Approx(2.0 / 3.0).epsilon(1e-15));
  CHECK(confusion.recall(1) == 0.0);
  CHECK(confusion.balanced_accuracy() == doctest::Approx(1.0 / 3.0).epsilon(1e-15));
  Confusion sum = confusion;
  sum.add(confusion);
  CHECK(sum.counts[0] == std::vector<std::int64_t>{4, 2, 0});
  CHECK(Confusion({"a"}).balanced_accuracy() == 0.0);
}

TEST_CASE("imbalance: classes are uneven from half as many rows again") {
  Dataset data;
  data.class_names = {"a", "b"};
  data.labels = {0, 0, 0, 1, 1};
  CHECK(has_uneven_classes(data));
  data.labels = {0, 0, 0, 1, 1, 1, 0};
  CHECK_FALSE(has_uneven_classes(data));
  CHECK_FALSE(has_uneven_classes(Dataset()));
}

TEST_CASE("imbalance: weights find the rare class, which costs accuracy on the common one") {
  const Dataset data = uneven_noise();
  const RunResult plain = train(data, quick(Imbalance::kNone));
  const RunResult weighted = train(data, quick(Imbalance::kWeights));
  CHECK(weighted.imbalance == "weights");
  // A model of the common class alone has 0.5. Noise overlaps half, so that 0.75 is the best there
  // is; the 10 rare test rows scatter its recall by sqrt(0.25 * 0.75 / 10) = 0.14, of which the
  // balanced accuracy has half. Two of those below it is 0.61.
  CHECK(plain.balanced_accuracy.value() <= 0.61);
  CHECK(weighted.balanced_accuracy.value() > 0.61);
  CHECK(plain.test_score.value() > weighted.test_score.value());
  std::int64_t rows = 0;
  for (const auto& counts : weighted.confusion->counts) {
    rows = std::accumulate(counts.begin(), counts.end(), rows);
  }
  CHECK(rows == 200);
}

TEST_CASE("imbalance: results keep the table, folds add theirs, even classes have none") {
  const Dataset data = uneven_noise();
  TrainOptions options = quick(Imbalance::kWeights);
  options.epochs = 1;
  options.folds = 4;
  const RunResult folds = train(data, options);
  const std::vector<std::vector<std::int64_t>> counts = folds.confusion->counts;
  CHECK(counts[0][0] + counts[0][1] == 950);
  CHECK(counts[1][0] + counts[1][1] == 50);
  const RunResult read = run_from_json(to_json(folds));
  CHECK(read.confusion->counts == counts);
  CHECK(read.confusion->classes == std::vector<std::string>{"common", "rare"});
  CHECK(read.balanced_accuracy == folds.balanced_accuracy);
  CHECK(read.imbalance == "weights");

  options.folds = 0;
  const RunResult iris = train(open_dataset("iris"), options);
  CHECK_FALSE(iris.confusion.has_value());
  CHECK_FALSE(nlohmann::json::parse(to_json(iris)).contains("balanced_accuracy"));
}

TEST_CASE("imbalance: a resumed run goes on with the weights; only such checkpoints name them") {
  const Dataset data = uneven_noise();
  const TempDir folder;
  const TrainOptions options = quick(Imbalance::kWeights);
  const std::string whole = train(data, options).weights_sha256;
  CHECK(whole != train(data, quick(Imbalance::kNone)).weights_sha256);
  TrainOptions part = options;
  part.save = (folder / "m.safetensors").string();
  part.stop_after = 30;
  train(data, part);
  TrainOptions rest = options;
  rest.resume = part.save;
  const RunResult resumed = train(data, rest);
  CHECK(resumed.weights_sha256 == whole);
  rest.imbalance = Imbalance::kNone;
  CHECK(contains(refusal([&] { train(data, rest); }), "treatment of uneven classes"));

  Dataset same = uneven_noise();
  part.stop_after = 0;
  const RunResult saved = train(data, part);
  const Evaluation evaluation = evaluate_checkpoint(SavedRun(part.save), same);
  CHECK(evaluation.confusion->counts == saved.confusion->counts);
  CHECK(nlohmann::json::parse(to_json(evaluation))["confusion"]["counts"] ==
        nlohmann::json(saved.confusion->counts));
  // A class of the data that no row has need not be one of the model; one that a row has must.
  same.class_names.push_back("ghost");
  CHECK(evaluate_checkpoint(SavedRun(part.save), same).scores.score == evaluation.scores.score);
  same.class_names.push_back("ghost");
  same.labels[3] = static_cast<std::int32_t>(same.class_names.size()) - 1;
  const auto refused = [&] {
    return refusal([&] { evaluate_checkpoint(SavedRun(part.save), same); });
  };
  const std::string unknown = "its model has no class \"ghost\", which ";
  CHECK(contains(refused(), unknown + "line 5 of 'noise.csv' has"));  // below the names of columns
  same.lines.clear();                                                 // as those of arrays
  CHECK(contains(refused(), unknown + "row 3 (counted from 0) of 'noise.csv' has"));
  rewrite_checkpoint(part.save, (folder / "w.safetensors").string(),
                     [](nlohmann::json& run) { CHECK(run.erase("imbalance") == 1); });
  part.imbalance = Imbalance::kNone;
  part.save = (folder / "n.safetensors").string();
  train(data, part);
  rewrite_checkpoint(part.save, (folder / "o.safetensors").string(),
                     [](nlohmann::json& run) { CHECK(run.erase("imbalance") == 0); });
}

TEST_CASE("imbalance: several ranks count what one does") {
  const Dataset data = uneven_noise();
  TrainOptions options = quick(Imbalance::kWeights);
  options.epochs = 2;
  options.recipe = "votes";
  options.micro_batches = 2;
  options.parallel.method = ParallelMethod::kVotes;
  std::vector<RunResult> results(3);
  run_ranks(1, [&](Communicator& ranks) {
    options.ranks = &ranks;
    results[2] = train(data, options);
  });
  run_ranks(2, [&](Communicator& ranks) {
    TrainOptions own = options;
    own.ranks = &ranks;
    results[static_cast<std::size_t>(ranks.rank())] = train(data, own);
  });
  for (const RunResult& result : results) {
    CHECK(result.weights_sha256 == results[2].weights_sha256);
    CHECK(result.confusion->counts == results[2].confusion->counts);
  }
}

TEST_CASE("imbalance: another word is refused with those that are known") {
  CHECK(contains(refusal([] { parse_imbalance("weight"); }),
                 "unknown value of --imbalance 'weight'; did you mean 'weights'?"));
}

}  // namespace
}  // namespace tritgrad::test::test_imbalance
