// --label-smoothing: its default, what a checkpoint keeps of it, and what contradicts one.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/data/open_dataset.h"
#include "engine/files/safetensors.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_label_smoothing {
namespace {

double smoothing_of(std::int64_t rows, const ImageShape& image) {
  Dataset dataset;
  dataset.rows = rows;
  dataset.image = image;
  return with_defaults(TrainSpec(), dataset).label_smoothing.value();
}

TrainOptions quick(double smoothing) {
  TrainOptions options;
  options.model = "mlp:16";
  options.recipe = "latent8";
  options.epochs = 2;
  options.batch = 64;
  options.label_smoothing = smoothing;
  return options;
}

TEST_CASE(
    "label smoothing: 0.1 for images from 10,000 rows, none elsewhere, or what was asked for") {
  CHECK(smoothing_of(10000, {28, 28, 1}) == 0.1);
  CHECK(smoothing_of(9999, {28, 28, 1}) == 0.0);
  CHECK(smoothing_of(20000, {}) == 0.0);
  TrainOptions asked;
  asked.label_smoothing = 0.0;
  Dataset images;
  images.rows = 60000;
  images.image = {28, 28, 1};
  CHECK(with_defaults(asked, images).label_smoothing == 0.0);
}

TEST_CASE("label smoothing: the loss is the smoothed one, and the result says so") {
  const Dataset digits = open_dataset("digits");
  const RunResult hard = train(digits, quick(0.0));
  const RunResult smooth = train(digits, quick(0.9));
  CHECK(hard.label_smoothing == 0.0);
  CHECK(smooth.label_smoothing == 0.9);
  // No prediction is nearer to such targets than their entropy: .19 at the label, .09 elsewhere.
  const double entropy = -(0.19 * std::log(0.19) + 9 * 0.09 * std::log(0.09));
  CHECK(smooth.train_loss > entropy);
  CHECK(hard.train_loss < entropy);
}

TEST_CASE("label smoothing: a resumed run goes on with it, and not without") {
  const Dataset digits = open_dataset("digits");
  const TempDir folder;
  const TrainOptions options = quick(0.1);
  const std::string whole = train(digits, options).weights_sha256;
  CHECK(whole != train(digits, quick(0.0)).weights_sha256);
  TrainOptions part = options;
  part.save = (folder / "m.safetensors").string();
  part.stop_after = 30;
  train(digits, part);
  TrainOptions rest = options;
  rest.resume = part.save;
  CHECK(train(digits, rest).weights_sha256 == whole);
  rest.label_smoothing = 0.0;
  CHECK(contains(refusal([&] { train(digits, rest); }), "label smoothing"));
}

TEST_CASE("label smoothing: checkpoints of before it, and before augmentation, have none") {
  const Dataset digits = open_dataset("digits");
  const TempDir folder;
  TrainOptions options = quick(0.0);
  const std::string whole = train(digits, options).weights_sha256;
  options.save = (folder / "new.safetensors").string();
  options.stop_after = 30;
  train(digits, options);
  const std::string old = (folder / "old.safetensors").string();
  rewrite_checkpoint(options.save, old, [](nlohmann::json& run) {
    REQUIRE(run.erase("label_smoothing") == 1);
    REQUIRE(run.erase("augment") == 1);
  });
  TrainOptions saved{SavedRun(old).spec(), {}};
  CHECK(saved.label_smoothing == 0.0);
  CHECK(saved.augment.empty());
  saved.resume = old;
  CHECK(train(digits, saved).weights_sha256 == whole);
}

}  // namespace
}  // namespace tritgrad::test::test_label_smoothing
