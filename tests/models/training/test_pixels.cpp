// --pixels: its default, what a checkpoint keeps of it, and what contradicts one.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/files/safetensors.h"
#include "models/training/evaluate.h"
#include "models/training/train.h"
#include "tests/support/byte_digits.h"
#include "tests/support/idx_folder.h"
#include "tests/support/program.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_pixels {
namespace {

PixelScale scale_of(const ImageShape& image, Element element) {
  Dataset dataset;
  dataset.image = image;
  dataset.element = element;
  return with_defaults(TrainSpec(), dataset).pixels.value();
}

TrainOptions quick(PixelScale pixels) {
  TrainOptions options;
  options.data = "digits";
  options.model = "mlp:16";
  options.recipe = "latent8";
  options.epochs = 2;
  options.batch = 64;
  options.pixels = pixels;
  return options;
}

// A checkpoint after 30 steps, and the hash of the weights of the whole run.
std::string save_part(const Dataset& data, TrainOptions options, const std::string& path) {
  const std::string whole = train(data, options).weights_sha256;
  options.save = path;
  options.stop_after = 30;
  train(data, options);
  return whole;
}

TEST_CASE(
    "pixels: square roots for grey images of bytes, linear elsewhere, or what was asked for") {
  CHECK(scale_of({28, 28, 1}, Element::kByte) == PixelScale::kSquareRoot);
  CHECK(scale_of({8, 8, 1}, Element::kFloat32) == PixelScale::kLinear);
  CHECK(scale_of({32, 32, 3}, Element::kByte) == PixelScale::kLinear);
  CHECK(scale_of({}, Element::kByte) == PixelScale::kLinear);
  CHECK(with_defaults(quick(PixelScale::kLinear), byte_digits()).pixels == PixelScale::kLinear);
}

TEST_CASE("pixels: a resumed run and a test of a checkpoint go on with their scale") {
  Dataset data = byte_digits();
  const TempDir folder;
  const TrainOptions options = quick(PixelScale::kSquareRoot);
  const std::string path = (folder / "m.safetensors").string();
  const std::string whole = save_part(data, options, path);
  CHECK(whole != train(data, quick(PixelScale::kLinear)).weights_sha256);
  TrainOptions rest = options;
  rest.resume = path;
  rest.pixels = PixelScale::kLinear;
  CHECK(contains(refusal([&] { train(data, rest); }), "scale of pixels"));
  rest = {SavedRun(path).spec(), {}};
  rest.resume = rest.save = path;
  const RunResult run = train(data, rest);
  CHECK(run.weights_sha256 == whole);
  CHECK(run.pixels == "sqrt");
  CHECK(evaluate_checkpoint(SavedRun(path), data).scores.score == *run.test_score);
}

TEST_CASE("pixels: checkpoints of before them are linear") {
  const Dataset data = byte_digits();
  const TempDir folder;
  const std::string path = (folder / "new.safetensors").string();
  const std::string whole = save_part(data, quick(PixelScale::kLinear), path);
  const std::string old = (folder / "old.safetensors").string();
  rewrite_checkpoint(path, old, [](nlohmann::json& run) { REQUIRE(run.erase("pixels") == 1); });
  TrainOptions saved{SavedRun(old).spec(), {}};
  CHECK(saved.pixels == PixelScale::kLinear);
  saved.resume = old;
  CHECK(train(data, saved).weights_sha256 == whole);
}

TEST_CASE("pixels: the program resumes a checkpoint of byte images with their square roots") {
  using nlohmann::json;
  const TempDir folder;
  test::write_idx_folder(folder);
  const std::string here = test::from_folder(folder.path());
  const auto result = [&](const std::string& arguments) {
    const test::Result done = test::run(arguments + " --json -", here);
    CAPTURE(done.err);
    REQUIRE(done.exit_code == 0);
    return json::parse(done.out);
  };
  const std::string train = "train --data idx --model mlp:8 --recipe latent8 --epochs 4 --batch 16";
  const json whole = result(train);
  CHECK(whole["pixels"] == "sqrt");
  const json linear = result(train + " --pixels linear");
  CHECK(whole["weights_sha256"] != linear["weights_sha256"]);
  result(train + " --save m --stop-after 6");
  test::check_refused("train --resume m --pixels linear",
                      "--pixels: 'linear' contradicts the checkpoint 'm', which has 'sqrt'", here);
  const json rest = result("train --resume m --pixels sqrt --save n --stop-after 9");
  CHECK(rest["pixels"] == "sqrt");
  for (const char* checkpoint : {"m", "n"}) {
    const json resumed = result(std::string("train --resume ") + checkpoint);
    CHECK(resumed["weights_sha256"] == whole["weights_sha256"]);
    CHECK(resumed["test_accuracy"] == whole["test_accuracy"]);
    CHECK(resumed["pixels"] == "sqrt");
  }
  CHECK(result("eval n")["test_accuracy"] == whole["test_accuracy"]);
  result(train + " --pixels linear --save l --stop-after 6");
  test::check_refused("train --resume l --pixels sqrt", "which has 'linear'", here);
  CHECK(result("train --resume l")["weights_sha256"] == linear["weights_sha256"]);
}

}  // namespace
}  // namespace tritgrad::test::test_pixels
