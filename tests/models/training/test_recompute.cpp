// Layers that are computed again in backward: the same bits in less memory, in every way of
// training.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/text_dataset.h"
#include "models/networks/llama.h"
#include "models/recipes/recipe.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "ops/loss.h"
#include "tests/support/support_files.h"
#include "tests/support/thread_ranks.h"

namespace tritgrad::test::test_recompute {
namespace {

Dataset small_text(const TempDir& dir, std::int64_t window = 16) {
  std::string text;
  for (int i = 0; i < 120; ++i) {
    text += i % 3 == 0 ? "A cat sat on a mat. " : "The dog ate the bone. ";
  }
  return text_dataset(std::make_shared<TokenText>(open_bytes(dir.write("text.txt", text))), "small",
                      window);
}

TrainOptions quick(const std::string& recipe,
                   const std::string& model = "llama:2,32:heads=2:kv=1:ff=48:context=16") {
  TrainOptions options;
  options.model = model;
  options.recipe = recipe;
  options.epochs = 1;
  options.epoch_tokens = 640;
  options.batch = 8;
  return options;
}

// The options, with layers that are computed again.
TrainOptions again(TrainOptions options) {
  options.recompute = true;
  return options;
}

}  // namespace

TEST_CASE("recompute: every recipe trains the same weights and the same state of the optimizer") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  std::vector<std::string> recipes = language_recipe_names();
  for (const char* other : {"fp32", "latent8", "votes", "dqt", "lion"}) recipes.emplace_back(other);
  for (const std::string& recipe : recipes) {
    CAPTURE(recipe);
    const TrainOptions options = quick(recipe);
    const RunResult kept = train(data, options), computed = train(data, again(options));
    CHECK(computed.weights_sha256 == kept.weights_sha256);
    CHECK(computed.optimizer_sha256 == kept.optimizer_sha256);
    CHECK(computed.test_score == kept.test_score);
    CHECK(computed.train_loss == kept.train_loss);
  }
}

TEST_CASE("recompute: the same of a tied head, of products in floats, and of parts of batches") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  TrainOptions tied = quick("latent8-lm", "llama:2,32:heads=2:ff=48:context=16:tie=yes");
  TrainOptions floats = tied;
  floats.overrides = {"compute=fp32"};
  TrainOptions parts = quick("latent8-lm");
  parts.micro_batches = 4;
  parts.overrides = {"gradients=kept", "clip_grad_norm=1"};
  for (const TrainOptions& options : {tied, floats, parts}) {
    CHECK(train(data, again(options)).weights_sha256 == train(data, options).weights_sha256);
  }
}

TEST_CASE("recompute: ranks train the same model") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  const auto hash_of = [&](const char* recipe, ParallelMethod method, bool recompute) {
    TrainOptions options = quick(recipe);
    options.micro_batches = 4;
    options.parallel.method = method;
    options.recompute = recompute;
    std::vector<std::string> hashes(2);
    run_ranks(2, [&](Communicator& ranks) {
      TrainOptions own = options;
      own.ranks = &ranks;
      hashes[static_cast<std::size_t>(ranks.rank())] = train(data, own).weights_sha256;
    });
    CHECK(hashes[0] == hashes[1]);
    return hashes[0];
  };
  for (const auto& [recipe, method] : {std::pair("votes-lm", ParallelMethod::kVotes),
                                       std::pair("latent8-lm", ParallelMethod::kAllreduce)}) {
    CHECK(hash_of(recipe, method, true) == hash_of(recipe, method, false));
  }
}

TEST_CASE("recompute: a resumed run goes on with it, and may begin with it") {
  const TempDir dir;
  const Dataset data = small_text(dir);
  TrainOptions options = quick("latent8-lm");
  options.epochs = 2;
  const std::string expected = train(data, options).weights_sha256;
  for (const bool from_start : {false, true}) {
    TrainOptions first = options;
    first.stop_after = 5;
    first.recompute = from_start;
    first.save = dir / "run.safetensors";
    train(data, first);
    CHECK(SavedRun(first.save).spec().recompute == from_start);
    TrainOptions second = again(options);
    second.resume = first.save;
    CHECK(train(data, second).weights_sha256 == expected);
  }
}

TEST_CASE("recompute: a layer more costs the memory of what it begins with alone") {
  constexpr std::int64_t kWidth = 64, kHidden = 128, kTokens = 32, kRows = 16;
  // What a step needs for values and their gradients.
  const auto bytes_of = [&](int layers, bool recompute) {
    const LlamaSpec spec =
        parse_llama(concat("llama:", layers, ",64:heads=2:ff=128:context=", kTokens));
    Llama model(fit_llama(spec, 0, 256), load_recipe("latent8-lm"), 7);
    std::vector<float> tokens(kRows * kTokens, 65.0f);
    const std::vector<std::int32_t> labels(kRows * kTokens, 66);
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape tape;
    const Var logits = model.forward(tape, {tokens.data(), {kRows, kTokens}},
                                     {.training = true, .recompute = recompute});
    tape.backward(softmax_cross_entropy(tape, logits, labels), [](Parameter&) {});
    tape.reset();  // joins the memory to what is really needed
    return ledger::live(Category::kActivations) - before;
  };
  const auto layer = [&](bool recompute) {
    return (bytes_of(6, recompute) - bytes_of(2, recompute)) / 4;
  };
  constexpr std::int64_t kRow = 4 * kTokens * kRows;  // of one column of floats
  // What backward reads: query, key and value, the first two turned, too, what attention mixes, the
  // layer behind it, two sums, gate, up, down.
  CHECK(layer(false) >= kRow * (10 * kWidth + 2 * kHidden));
  // The sum that the next layer begins with, and four cache lines for the notes on it.
  CHECK(layer(true) >= kRow * kWidth);
  CHECK(layer(true) <= kRow * kWidth + 4 * 64);
}

TEST_CASE("recompute: the peak of a run falls") {
  const TempDir dir;
  const Dataset data = small_text(dir, 32);
  TrainOptions options = quick("latent8-lm", "llama:6,64:heads=2:ff=128:context=32");
  options.batch = 16;
  const std::int64_t kept = train(data, options).peak_live_bytes;
  // Five of six layers go, each of which has at least so much, but for what they begin with.
  constexpr std::int64_t kLayer = 4 * 16 * 32 * (10 * 64 + 2 * 128 - 64);
  CHECK(train(data, again(options)).peak_live_bytes <= kept - 5 * kLayer);
}

TEST_CASE("recompute: models of rows are refused with what to do instead") {
  const TempDir dir;
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:8";
  CHECK(refusal([&] { train(open_dataset("iris"), again(options)); }) ==
        "--recompute: model 'mlp:8' keeps what its layers make, only layers of llama:LAYERS,WIDTH "
        "are computed again; leave the option out, or save activations with --micro-batches");
}

}  // namespace tritgrad::test::test_recompute
