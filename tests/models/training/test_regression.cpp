// Regression: loss and scores against sums by hand, every recipe, checkpoints, folds, ranks.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/memory/parallel.h"
#include "models/recipes/recipe.h"
#include "models/training/evaluate.h"
#include "models/training/predict.h"
#include "models/training/regression.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/json_keys.h"
#include "tests/support/support_files.h"
#include "tests/support/thread_ranks.h"

namespace tritgrad::test::test_regression {
namespace {

const Dataset& diabetes() {
  static const Dataset data = open_dataset("diabetes");
  return data;
}

TrainOptions quick(const std::string& recipe = "latent8") {
  TrainOptions options;
  options.data = "diabetes";
  options.model = "mlp:16";
  options.recipe = recipe;
  options.epochs = 4;
  options.batch = 32;
  return options;
}

struct Errors {
  double rmse, mae, r2;
};

// The definitions, term by term; R² is scikit-learn's r2_score().
Errors errors_of(const std::vector<double>& found, const std::vector<double>& targets) {
  const auto n = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / n;
  double squares = 0.0, distances = 0.0, around_mean = 0.0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    squares += std::pow(found[i] - targets[i], 2);
    distances += std::abs(found[i] - targets[i]);
    around_mean += std::pow(targets[i] - mean, 2);
  }
  return {std::sqrt(squares / n), distances / n, 1.0 - squares / around_mean};
}

// fp32 rounds a standardised target or output by at most 2^-24 of its size, which is below 4: of a
// mean over errors that are a tenth of the deviation or more, that is 80 such roundings, twice.
constexpr double kRounding = 160.0 * 0x1p-24;

}  // namespace

TEST_CASE("regression: the loss and the scores of four rows, by hand") {
  Dataset data;
  data.name = "four";
  data.allocate(4, 1, Element::kFloat32);
  data.targets = {1.0, 2.0, 3.0, 6.0};
  const std::vector<std::int32_t> rows{0, 1, 2, 3};
  const TargetScale scale = TargetScale::fit(data, rows);  // 3 and sqrt(3.5)
  const Regression task(data, Standardizer({0.0f}, {1.0f}), scale);
  Loader loader = task.test_batches(rows);
  const Batch batch = loader.next();
  // In units: 3, 3, 3 and 3 + 2 sqrt(3.5), so that errors are 2, 1, 0 and 2 sqrt(3.5) - 3.
  std::vector<float> outputs{0.0f, 0.0f, 0.0f, 2.0f};
  const double last = 2.0 * std::sqrt(3.5) - 3.0, squares = 4.0 + 1.0 + last * last;
  Tape tape;
  const Var predicted = tape.constant({outputs.data(), {4, 1}});
  const double loss = static_cast<double>(task.loss(tape, predicted, batch).value.data[0]);
  CHECK(loss == doctest::Approx(squares / 3.5 / 4.0).epsilon(kRounding));
  const ScoreSums sums = task.score_sums({outputs.data(), {4, 1}}, batch);
  const Scores scores = task.scores(sums, rows);
  CHECK(scores.score == doctest::Approx(std::sqrt(squares / 4.0)).epsilon(kRounding));
  CHECK(scores.mae.value() == doctest::Approx((3.0 + last) / 4.0).epsilon(kRounding));
  CHECK(scores.r2.value() == doctest::Approx(1.0 - squares / 14.0).epsilon(kRounding));
  CHECK(std::isnan(task.score(0.0, 0)));
  // Of a single row there is no variance to explain.
  CHECK_FALSE(task.scores(sums, RowNumbers{2}).r2.has_value());
}

TEST_CASE("regression: every recipe learns, the same with any threads, and goes on when resumed") {
  const TempDir folder;
  const std::string path = folder / "r.safetensors";
  for (const std::string& recipe : recipe_names()) {
    CAPTURE(recipe);
    TrainOptions options = quick(recipe);
    options.validation = 0.1;
    const RunResult whole = train(diabetes(), options);
    CHECK(whole.metric == Metric::kRmse);
    CHECK(whole.curve.back().train_loss < whole.curve.front().train_loss);
    CHECK(whole.curve.back().train_score < whole.curve.front().train_score);
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      const RunResult again = train(diabetes(), options);
      CHECK(again.weights_sha256 == whole.weights_sha256);
      CHECK(again.test_score == whole.test_score);
      CHECK(again.test_mae == whole.test_mae);
    }
    set_thread_count(0);
    TrainOptions first = options, second = options;
    first.stop_after = 14;  // 10 steps an epoch
    first.save = path;
    train(diabetes(), first);
    second.resume = path;
    const RunResult resumed = train(diabetes(), second);
    CHECK(resumed.weights_sha256 == whole.weights_sha256);
    CHECK(resumed.optimizer_sha256 == whole.optimizer_sha256);
    CHECK(resumed.train_loss == whole.train_loss);
    CHECK(resumed.curve[1].train_score == whole.curve[1].train_score);
    CHECK(resumed.test_score == whole.test_score);
    CHECK(resumed.test_r2 == whole.test_r2);
  }
}

TEST_CASE("regression: it is better than the mean") {
  TrainOptions options = quick();
  options.epochs = 30;
  const RunResult run = train(diabetes(), options);
  // 0 is the mean of the rows that are scored. (Measured: 0.44 to 0.49 with five seeds.)
  CHECK(run.test_r2.value() > 0.35);
  CHECK(run.test_mae.value() < run.test_score.value());
}

TEST_CASE("regression: a checkpoint scores and predicts in the units of the label") {
  const TempDir folder;
  TrainOptions options = quick();
  options.save = folder / "r.safetensors";
  const RunResult run = train(diabetes(), options);
  const SavedRun saved(options.save);
  CHECK(saved.is_regression());
  CHECK(saved.spec().task == TaskKind::kRegress);
  CHECK(saved.class_names().empty());
  Dataset data = open_dataset("diabetes");
  const Evaluation evaluation = evaluate_checkpoint(saved, data);
  CHECK(evaluation.metric == Metric::kRmse);
  CHECK(evaluation.scores.score == run.test_score.value());
  CHECK(evaluation.scores.mae == run.test_mae);
  CHECK(evaluation.scores.r2 == run.test_r2);
  CHECK(keys_of(nlohmann::json::parse(to_json(evaluation))) ==
        std::set<std::string>{"checkpoint", "data", "test_rmse", "test_mae", "test_r2", "rows",
                              "tested", "steps"});

  const LoadedModel loaded = load_model(saved, data);
  const RowNumbers rows = fixed_split(data).test;
  const std::vector<double> values = predict_values(loaded, data, rows);
  std::vector<double> targets;
  for (const std::int32_t row : rows)
    targets.push_back(data.targets[static_cast<std::size_t>(row)]);
  const Errors naive = errors_of(values, targets);
  CHECK(run.test_score.value() == doctest::Approx(naive.rmse).epsilon(kRounding));
  CHECK(run.test_mae.value() == doctest::Approx(naive.mae).epsilon(kRounding));
  CHECK(run.test_r2.value() == doctest::Approx(naive.r2).epsilon(kRounding));
  // One row at a time, the same numbers.
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(predict_values(loaded, data, RowNumbers{rows[i]})[0] == values[i]);
}

TEST_CASE("regression: folds give the mean and the spread of the errors") {
  TrainOptions options = quick();
  options.folds = 3;
  const RunResult joined = train(diabetes(), options);
  double sum = 0.0, squares = 0.0, explained = 0.0;
  std::vector<double> scores;
  for (int fold = 0; fold < 3; ++fold) {
    const TrainOptions single = with_defaults(options, diabetes());
    const RunResult run = train(diabetes(), split_of(diabetes(), single, fold), single);
    scores.push_back(run.test_score.value());
    sum += scores.back() / 3.0;
    explained += run.test_r2.value() / 3.0;
  }
  for (const double score : scores) squares += (score - sum) * (score - sum);
  CHECK(joined.test_score.value() == doctest::Approx(sum).epsilon(1e-14));
  CHECK(joined.test_score_std.value() == doctest::Approx(std::sqrt(squares / 2.0)).epsilon(1e-12));
  CHECK(joined.test_r2.value() == doctest::Approx(explained).epsilon(1e-14));
  const auto json = nlohmann::json::parse(to_json(joined));
  CHECK(json["metric"] == "rmse");
  CHECK(json["test_rmse_std"] == joined.test_score_std.value());
  CHECK_FALSE(json.contains("test_accuracy"));
  CHECK(keys_of(json["curve"][0]) ==
        std::set<std::string>{"epoch", "train_loss", "train_rmse", "val_rmse"});
  const RunResult back = run_from_json(to_json(joined));
  CHECK(back.metric == Metric::kRmse);
  CHECK(back.test_score == joined.test_score);
  CHECK(back.test_mae == joined.test_mae);
  CHECK(back.test_r2 == joined.test_r2);
  CHECK(back.curve[2].train_score == joined.curve[2].train_score);
}

TEST_CASE("regression: ranks train the same model") {
  TrainOptions options = quick("votes");
  options.micro_batches = 4;
  options.parallel.method = ParallelMethod::kVotes;
  const auto train_on = [&](int count) {
    std::vector<RunResult> results(static_cast<std::size_t>(count));
    run_ranks(count, [&](Communicator& ranks) {
      TrainOptions own = options;
      own.ranks = &ranks;
      results[static_cast<std::size_t>(ranks.rank())] = train(diabetes(), own);
    });
    return results;
  };
  const RunResult one = train_on(1).front();
  for (const RunResult& result : train_on(2)) {
    CHECK(result.weights_sha256 == one.weights_sha256);
    // Sums of 88 doubles above zero in another order, of which each adds a rounding of 2^-53.
    CHECK(result.test_score.value() ==
          doctest::Approx(one.test_score.value()).epsilon(88 * 0x1p-52));
    CHECK(result.curve.back().train_score ==
          doctest::Approx(one.curve.back().train_score).epsilon(442 * 0x1p-52));
  }
}

TEST_CASE("regression: the ends of the labels are written with digits that tell them apart") {
  Dataset data = open_dataset("diabetes");
  CHECK(contains(dataset_line(data, {}), ", labels from 25 to 346; "));
  const auto line = [&](double low, double high) {
    data.targets.assign(data.targets.size(), low);
    data.targets.back() = high;
    return dataset_line(data, {});
  };
  CHECK(contains(line(1e9 + 0.123456, 1e9 + 0.98),
                 ", labels from 1000000000.123 to 1000000000.98; "));
  CHECK(contains(line(1.0, 1.0 + 0x1p-52), ", labels from 1 to 1.0000000000000002; "));
  CHECK(contains(line(0.0, 1e-300), ", labels from 0 to 1e-300; "));
  CHECK(contains(line(7.5, 7.5), ", labels from 7.5 to 7.5; "));
}

TEST_CASE("regression: what treats classes, and data of another kind, are refused") {
  TrainOptions options = quick();
  options.imbalance = Imbalance::kWeights;
  CHECK(
      contains(refusal([&] { train(diabetes(), options); }),
               "--imbalance is for classes, but the labels of 'diabetes' are numbers to predict"));
  options = quick();
  options.label_smoothing = 0.1;
  CHECK(contains(refusal([&] { train(diabetes(), options); }), "--label-smoothing is for classes"));

  const TempDir folder;
  const auto saved_on = [&](const Dataset& data, const std::string& name) {
    TrainOptions save = quick();
    save.epochs = 1;
    save.data = data.name;
    save.save = folder / name;
    train(data, save);
    return save.save;
  };
  const std::string numbers = saved_on(diabetes(), "numbers.safetensors");
  Dataset classes = open_dataset("diabetes");
  classes.labels.resize(classes.targets.size());
  classes.labels[0] = 1;
  classes.targets.clear();
  classes.class_names = {"a", "b"};
  CHECK(contains(refusal([&] { load_model(SavedRun(numbers), classes); }),
                 "its model predicts a number, but the labels of 'diabetes' are classes"));
  const std::string named = saved_on(classes, "classes.safetensors");
  Dataset data = open_dataset("diabetes");
  CHECK(contains(refusal([&] { load_model(SavedRun(named), data); }),
                 "its model predicts classes, but the labels of 'diabetes' are numbers"));
  const LoadedModel of_classes = load_model(SavedRun(named), classes);
  CHECK(contains(refusal([&] { predict_values(of_classes, classes, RowNumbers{0}); }),
                 "has 2 classes"));
  options = quick();
  options.resume = named;
  CHECK(contains(refusal([&] { train(diabetes(), options); }), "other features or classes"));
}

}  // namespace tritgrad::test::test_regression
