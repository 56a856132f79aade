// Language models as a task: scores by hand, every recipe, parts of batches and ranks, the
// tokenizer in checkpoints, options that are not theirs.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/text_dataset.h"
#include "models/generation/generator.h"
#include "models/recipes/recipe.h"
#include "models/training/evaluate.h"
#include "models/training/language_model.h"
#include "models/training/train.h"
#include "tests/support/piece_file.h"
#include "tests/support/support_files.h"
#include "tests/support/thread_ranks.h"

namespace tritgrad::test::test_language_model {
namespace {

std::string text_of(int sentences) {
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    text += i % 3 == 0 ? "A cat sat on a mat. " : "The dog ate the bone. ";
  }
  return text;
}

Dataset small_text(const TempDir& dir, const Vocabulary& vocabulary = Vocabulary::of_bytes()) {
  const std::string path = dir.write("text.txt", text_of(120));
  return text_dataset(std::make_shared<TokenText>(open_tokens(path, vocabulary)), "small", 16);
}

TrainOptions quick(const std::string& recipe) {
  TrainOptions options;
  options.model = "llama:1,32:heads=2:ff=32:context=16";
  options.recipe = recipe;
  options.epochs = 1;
  options.epoch_tokens = 640;
  options.batch = 8;
  return options;
}

}  // namespace

TEST_CASE("language model: the scores of given logits, by hand") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  const LanguageModel task(data);
  Loader loader = task.test_batches(RowNumbers{5});
  const Batch batch = loader.next();
  // The right token has twice the weight of each of the 255 others.
  std::vector<float> logits(16 * 256, 0.0f);
  for (std::size_t i = 0; i < 16; ++i) {
    logits[256 * i + static_cast<std::size_t>(batch.labels[i])] = std::numbers::ln2_v<float>;
  }
  const double nats = std::log(257.0 / 2.0);
  const ScoreSums sums = task.score_sums({logits.data(), {16, 256}}, batch);
  // 257 floats, each rounded by 2^-24 of itself, make a sum of 2 and 255 ones in double.
  constexpr double kRounding = 2.0 * 0x1p-24;
  CHECK(sums.score == doctest::Approx(16.0 * nats).epsilon(kRounding));
  const Scores scores = task.scores(sums, RowNumbers{5});
  CHECK(scores.nats.value() == doctest::Approx(nats).epsilon(kRounding));
  CHECK(scores.score == doctest::Approx(nats / std::numbers::ln2).epsilon(kRounding));
  CHECK_FALSE(scores.r2.has_value());
  Tape tape;
  const Var loss = task.loss(tape, tape.constant({logits.data(), {16, 256}}), batch);
  CHECK(static_cast<double>(loss.value.data[0]) == doctest::Approx(nats).epsilon(kRounding));
}

TEST_CASE("language model: bits are counted for bytes, not for tokens") {
  const TempDir dir;
  const std::string pieces = piece_file({"the", "at", " ", "The", "dog"}).bytes();
  const Dataset data = small_text(dir, Vocabulary::of_pieces(pieces, "pieces"));
  const auto tokens = static_cast<double>(data.text->size());
  const auto bytes = static_cast<double>(text_of(120).size());
  CHECK(tokens < bytes);
  const LanguageModel task(data);
  CHECK(task.score(16.0 * std::numbers::ln2, 1) == doctest::Approx(tokens / bytes));
}

TEST_CASE("language model: every recipe trains") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  std::vector<std::string> recipes = language_recipe_names();
  for (const char* other : {"fp32", "latent8", "votes", "lion"}) recipes.emplace_back(other);
  for (const std::string& recipe : recipes) {
    CAPTURE(recipe);
    const RunResult result = train(data, quick(recipe));
    CHECK(result.metric == Metric::kBitsPerByte);
    CHECK(result.steps == 5);
    // Knowing nothing is 8 bits a byte; few steps must not make that worse by much.
    CHECK(result.test_score.value() < 9.0);
    CHECK(result.test_nats.value() ==
          doctest::Approx(result.test_score.value() * std::numbers::ln2));
  }
}

TEST_CASE("language model: ranks train the same model") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  const auto hashes_of = [&](const char* recipe, ParallelMethod method, int count) {
    TrainOptions options = quick(recipe);
    options.micro_batches = 4;
    options.parallel.method = method;
    std::vector<std::string> hashes(static_cast<std::size_t>(count));
    run_ranks(count, [&](Communicator& ranks) {
      TrainOptions own = options;
      own.ranks = &ranks;
      hashes[static_cast<std::size_t>(ranks.rank())] = train(data, own).weights_sha256;
    });
    return hashes;
  };
  // Votes and their companions are sums of whole numbers; sums of floats belong to a number of
  // ranks.
  const std::string votes = hashes_of("votes-lm", ParallelMethod::kVotes, 1).front();
  for (const int count : {2, 4}) {
    for (const std::string& hash : hashes_of("votes-lm", ParallelMethod::kVotes, count)) {
      CHECK(hash == votes);
    }
  }
  const auto sums = hashes_of("latent8-lm", ParallelMethod::kAllreduce, 2);
  CHECK(sums.front() == sums.back());
  CHECK(hashes_of("latent8-lm", ParallelMethod::kAllreduce, 2) == sums);
}

TEST_CASE("language model: a checkpoint holds its tokenizer, and writes with it") {
  const TempDir dir;
  const std::string pieces = piece_file({"the", "at", " ", "The", "dog"}).bytes();
  const Vocabulary vocabulary = Vocabulary::of_pieces(pieces, "pieces");
  Dataset data = small_text(dir, vocabulary);
  TrainOptions options = quick("latent8-lm");
  options.save = dir / "run.safetensors";
  const RunResult result = train(data, options);
  const SavedRun saved(options.save);
  CHECK(saved.vocabulary().model() == pieces);
  CHECK(evaluate_checkpoint(saved, data).scores.score == result.test_score.value());
  const auto llama = load_for_generation(saved);
  CHECK(llama->spec().vocabulary == vocabulary.size());

  Dataset bytes = small_text(dir);
  CHECK(contains(refusal([&] { evaluate_checkpoint(saved, bytes); }),
                 "its tokens are those of another tokenizer than those of 'small'"));
  options.resume = options.save;
  options.epochs = 2;
  CHECK(refusal([&] { train(bytes, options); }) != "");
  CHECK(train(data, options).steps == 10);
}

TEST_CASE("language model: models and data of other kinds are refused") {
  const TempDir dir;
  Dataset data = small_text(dir);
  const auto message = [&](const auto& change) {
    TrainOptions options = quick("latent8-lm");
    change(options);
    return refusal([&] { train(data, options); });
  };
  CHECK(message([](TrainOptions& o) { o.label_smoothing = 0.1; }) ==
        "--label-smoothing is for classes, but 'small' is a text; leave it out");
  CHECK(contains(message([](TrainOptions& o) { o.imbalance = Imbalance::kWeights; }),
                 "--imbalance is for classes"));
  CHECK(contains(message([](TrainOptions& o) { o.augment = "flip"; }), "--augment is for images"));
  CHECK(contains(message([](TrainOptions& o) { o.task = TaskKind::kRegress; }),
                 "--task is for rows"));
  CHECK(contains(message([](TrainOptions& o) { o.folds = 3; }), "is a text"));

  const Dataset iris = open_dataset("iris");
  TrainOptions of_text = quick("latent8");
  of_text.epoch_tokens = 0;
  CHECK(contains(refusal([&] { train(iris, of_text); }), "give a text, as in --data text:FILE"));
  of_text.model = "mlp:8";
  of_text.epoch_tokens = 640;
  CHECK(contains(refusal([&] { train(iris, of_text); }), "--epoch-tokens is for texts"));

  TrainOptions options = quick("latent8-lm");
  options.save = dir / "run.safetensors";
  train(data, options);
  const SavedRun saved(options.save);
  Dataset rows = open_dataset("iris");
  CHECK(contains(refusal([&] { evaluate_checkpoint(saved, rows); }), "its model reads text"));
}

}  // namespace tritgrad::test::test_language_model
