// Transformers: specs, what a token may see, one token at a time, bits, learning by heart.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/text_dataset.h"
#include "engine/files/checkpoint.h"
#include "engine/memory/parallel.h"
#include "models/footprint.h"
#include "models/generation/generator.h"
#include "models/networks/llama.h"
#include "models/training/evaluate.h"
#include "models/training/train.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_llama {
namespace {

constexpr const char* kModel = "llama:2,32:heads=4:kv=2:ff=48:context=16";

std::unique_ptr<Llama> make_llama(const std::string& recipe, const std::string& model = kModel) {
  return std::make_unique<Llama>(fit_llama(parse_llama(model), 0, 256), load_recipe(recipe), 7);
}

// Returns the logits of the token behind each [tokens x 256].
std::vector<float> logits_of(Llama& model, const std::vector<float>& tokens) {
  std::vector<float> row = tokens;
  Tape tape;
  tape.set_recording(false);
  const auto n = static_cast<std::int64_t>(row.size());
  const Var y = model.forward(tape, {row.data(), {1, n}}, {});
  return {y.value.data, y.value.data + y.value.size()};
}

const std::vector<float> kTokens{84, 104, 101, 32, 83, 116, 97, 116, 101, 32, 111, 102};

constexpr std::int64_t kWindow = 32;
constexpr const char* kSentence = "The state of the union is strong. ";

// A text of one sentence, over and over, in a file of its own.
Dataset repeated(const TempDir& dir, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += kSentence;
  const std::string path = dir.write("text.txt", text);
  return text_dataset(std::make_shared<TokenText>(open_bytes(path)), "repeated", kWindow);
}

TrainOptions by_heart(const std::string& recipe) {
  TrainOptions options;
  options.model = "llama:2,64:heads=2:ff=128:context=32";
  options.recipe = recipe;
  options.epochs = 10;
  options.batch = 8;
  return options;
}

}  // namespace

TEST_CASE("llama: a spec is read, and refused with the part that is wrong") {
  const LlamaSpec spec = parse_llama("llama:4,256");
  CHECK(spec.layers == 4);
  CHECK(spec.heads == 4);
  CHECK(spec.kv_heads == 4);
  CHECK(spec.ff == 768);  // 682.7, rounded up to a multiple of 256
  CHECK(spec.context == 128);
  CHECK_FALSE(spec.tied);
  const LlamaSpec full = parse_llama("llama:2,32:heads=4:kv=2:ff=48:context=16:tie=yes");
  CHECK(full.kv_width() == 16);
  CHECK(full.tied);

  const auto message = [](const char* text) { return refusal([&] { parse_llama(text); }); };
  CHECK(message("llama:2,96:heads=5") ==
        "model 'llama:2,96:heads=5': 5 heads do not cut a width of 96 into parts of an even size; "
        "heads that do are 1, 2, 3, 4, 6, 8, 12, 16, 24, 48");
  CHECK(contains(message("llama:2,96:heads=4:kv=3"), "kv=3 does not divide the 4 heads"));
  CHECK(contains(message("llama:2,97"), "width 97 is odd"));
  CHECK(contains(message("llama:2,96:head=4"), "unknown option 'head'; did you mean 'heads'"));
  CHECK(contains(message("llama:2,96:ff=8:ff=16"), "'ff' is named twice"));
  CHECK(contains(message("llama:2,96:context=0"), "context '0' is not a whole number in 1.."));
  CHECK(contains(message("llama:2,96:tie=maybe"), "tie 'maybe' is neither yes nor no"));
  for (const char* bad : {"llama:", "llama:4", "llama:4,256,3", "llama:0,8", "llama:2,-8"}) {
    CAPTURE(bad);
    CHECK(message(bad) != "");
  }
  const Recipe recipe = load_recipe("latent8");
  CHECK(contains(refusal([&] { plan_model(kModel, 0, 0, recipe); }), "the vocabulary is unknown"));
  const Dataset digits = open_dataset("digits");
  CHECK(contains(refusal([&] { plan_model("llama:2,32:context=64", digits, 10, recipe); }),
                 "the data has rows of 64 features; give a text"));
}

TEST_CASE("llama: a token sees those before it alone") {
  for (const char* recipe : {"fp32", "latent8"}) {
    CAPTURE(recipe);
    const auto model = make_llama(recipe);
    std::vector<float> other = kTokens;
    other[8] = 42;
    const std::vector<float> a = logits_of(*model, kTokens), b = logits_of(*model, other);
    const auto same = [&](std::size_t token) {
      return std::equal(a.begin() + static_cast<std::ptrdiff_t>(256 * token),
                        a.begin() + static_cast<std::ptrdiff_t>(256 * (token + 1)),
                        b.begin() + static_cast<std::ptrdiff_t>(256 * token));
    };
    for (std::size_t token = 0; token < kTokens.size(); ++token) {
      CAPTURE(token);
      CHECK(same(token) == (token < 8));
    }
  }
}

// Sums of fp32 over n numbers err by n 2^-24 of the sum of magnitudes at most. One layer's longest
// sums have 48 terms, two layers and the head follow each other, and each rounding can grow by the
// norms' division: 5 sums of about 48 terms, and as much again for their growth, on logits of a few
// units.
constexpr double kTolerance = 2.0 * 5.0 * 48.0 * 0x1p-24 * 8.0;

Var read_token(Llama& llama, Tape& tape, float token, KeyValueCache& cache) {
  const auto number = static_cast<std::int32_t>(token);
  return llama.read(tape, {&number, 1}, cache);
}

TEST_CASE("llama: tokens one by one give the logits of all at once") {
  for (const char* model : {kModel, "llama:1,32:heads=2:ff=48:context=16:tie=yes"}) {
    for (const char* recipe : {"fp32", "latent8", "votes"}) {
      CAPTURE(model);
      CAPTURE(recipe);
      const auto llama = make_llama(recipe, model);
      const std::vector<float> all = logits_of(*llama, kTokens);
      KeyValueCache cache(llama->spec());
      Tape tape;
      tape.set_recording(false);
      double largest = 0.0;
      for (std::size_t i = 0; i < kTokens.size(); ++i) {
        const Var y = read_token(*llama, tape, kTokens[i], cache);
        for (std::size_t j = 0; j < 256; ++j) {
          largest =
              std::max(largest, static_cast<double>(std::abs(y.value.data[j] - all[256 * i + j])));
        }
        tape.reset();
      }
      CHECK(largest <= kTolerance);
      CHECK(cache.tokens() == std::ssize(kTokens));
    }
  }
}

// Products are of integers and all else goes row by row, so no sum depends on what is read
// together.
TEST_CASE("llama: tokens in parts of any length give the same bits") {
  const std::vector<std::int32_t> tokens(kTokens.begin(), kTokens.end());
  for (const char* recipe : {"latent8", "votes"}) {
    CAPTURE(recipe);
    const auto llama = make_llama(recipe);
    std::vector<float> expected;
    for (const std::size_t part : {std::size_t{1}, std::size_t{3}, std::size_t{5}, tokens.size()}) {
      CAPTURE(part);
      KeyValueCache cache(llama->spec());
      Tape tape;
      tape.set_recording(false);
      std::vector<float> last;
      for (std::size_t i = 0; i < tokens.size(); i += part) {
        const std::size_t n = std::min(part, tokens.size() - i);
        const Var y = llama->read(tape, std::span(tokens).subspan(i, n), cache);
        last.assign(y.value.data, y.value.data + y.value.size());
        tape.reset();
      }
      if (part == 1) expected = last;
      CHECK(last == expected);
    }
  }
}

TEST_CASE("llama: a full cache and a long row are refused") {
  const auto llama = make_llama("latent8");
  CHECK(contains(refusal([&] { logits_of(*llama, std::vector<float>(17, 1.0f)); }),
                 "looks at 1 to 16 tokens together"));
  CHECK(contains(refusal([&] { logits_of(*llama, {256.0f}); }), "256"));
  KeyValueCache cache(llama->spec());
  Tape tape;
  tape.set_recording(false);
  for (int i = 0; i < 16; ++i) read_token(*llama, tape, 65.0f, cache);
  CHECK(contains(refusal([&] { read_token(*llama, tape, 65.0f, cache); }),
                 "1 tokens behind 16, but it looks at 1 to 16 together"));
  CHECK(contains(refusal([&] { llama->read(tape, {}, cache); }), "0 tokens behind 16"));
}

TEST_CASE("llama: memory of keys and values doubles as tokens come, and holds what it held") {
  const auto llama = make_llama("latent8", "llama:2,32:heads=4:kv=2:ff=48:context=200");
  constexpr std::int64_t kToken = 2 * 2 * 16 * 4;  // keys and values of 16 floats in two layers
  KeyValueCache cache(llama->spec());
  Tape tape;
  tape.set_recording(false);
  std::vector<float> tokens;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    tokens.push_back(kTokens[static_cast<std::size_t>(i) % kTokens.size()]);
    const Var y = read_token(*llama, tape, tokens.back(), cache);
    const std::vector<float> last(y.value.data, y.value.data + y.value.size());
    tape.reset();
    if (i == 0) first = ledger::live(Category::kActivations);
    const std::int64_t room = i < 64 ? 64 : i < 128 ? 128 : 200;
    CHECK(ledger::live(Category::kActivations) - first == (room - 64) * kToken);
    if (i != 63 && i != 64 && i != 199) continue;
    const std::vector<float> all = logits_of(*llama, tokens);
    double largest = 0.0;
    for (std::size_t j = 0; j < 256; ++j) {
      const float expected = all[256 * static_cast<std::size_t>(i) + j];
      largest = std::max(largest, static_cast<double>(std::abs(last[j] - expected)));
    }
    // Sums over up to 200 tokens instead of 48 terms.
    CHECK(largest <= kTolerance * 200.0 / 48.0);
  }
}

TEST_CASE("llama: scoring needs the memory of one layer, however many there are") {
  constexpr std::int64_t kRows = 8, kRow = 4 * kRows * 16;  // of one column of floats
  const auto bytes_of = [&](int layers, const char* recipe, bool training) {
    const auto model =
        make_llama(recipe, concat("llama:", layers, ",32:heads=4:kv=2:ff=48:context=16"));
    std::vector<float> tokens(kRows * 16, 65.0f);
    const std::int64_t before = ledger::live(Category::kActivations);
    Tape tape;
    tape.set_recording(training);
    model->forward(tape, {tokens.data(), {kRows, 16}}, {});
    tape.reset();
    return ledger::live(Category::kActivations) - before;
  };
  for (const char* recipe : {"fp32", "latent8"}) {
    CAPTURE(recipe);
    CHECK(bytes_of(6, recipe, true) - bytes_of(2, recipe, true) > 4 * kRow * 10 * 32);
    // A note on what each layer begins with, in a cache line.
    CHECK(bytes_of(6, recipe, false) - bytes_of(2, recipe, false) <= 4 * 64);
    // The logits; h before and after a layer, the sum between, and gate, up and what is made of
    // them in floats; int8 rows and factors of rows, fewer than so many columns.
    CHECK(bytes_of(2, recipe, false) < kRow * (256 + 3 * 32 + 3 * 48 + 2 * 32));
  }
}

TEST_CASE("llama: the gradient of a tied head is forecast beside each of the layers'") {
  const auto transient = [](const std::string& model, const char* name) {
    const Recipe recipe = load_recipe(name, {"gradients=released"});
    return forecast_footprint(plan_model(model, 0, 256, recipe), recipe).transient_gradient;
  };
  const std::string model = kModel;
  CHECK(transient(model, "fp32") == 4 * 256 * 32);
  CHECK(transient(model + ":tie=yes", "fp32") == 4 * (256 * 32 + 48 * 32));
  // In integers matrices have no gradient in memory, but their scales.
  CHECK(transient(model + ":tie=yes", "latent8") == 4 * (256 * 32 + 48));
}

TEST_CASE("llama: every recipe of a kind learns a sentence by heart, and writes it") {
  const TempDir dir;
  const Dataset data = repeated(dir, 240);
  for (const char* recipe : {"latent8", "master", "fp32"}) {
    CAPTURE(recipe);
    TrainOptions options = by_heart(recipe);
    options.save = dir / (std::string(recipe) + ".safetensors");
    const RunResult result = train(data, options);
    // Within a window the first tokens alone can be wrong: where the sentence begins is seen from a
    // few letters. 34 places cost log2(34) = 5.1 bits once, in 32 bytes.
    CHECK(result.test_score.value() < 0.35);
    const SavedRun saved(options.save);
    const auto llama = load_for_generation(saved);
    Generator generator(*llama, {.temperature = 0.0});
    const std::string prompt = "The state of ";
    const std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());
    generator.read(tokens);
    std::string written = prompt;
    // Longer than the context, of which the older half is forgotten on the way.
    for (int i = 0; i < 60; ++i) written += static_cast<char>(generator.next());
    std::string wanted;
    for (int i = 0; i < 3; ++i) wanted += kSentence;
    CHECK(written == wanted.substr(0, written.size()));
  }
}

TEST_CASE("llama: the same bits for every number of threads, and for a run that is resumed") {
  const TempDir dir;
  const Dataset data = repeated(dir, 60);
  TrainOptions options = by_heart("latent8");
  options.epochs = 2;
  set_thread_count(1);
  const std::string one = train(data, options).weights_sha256;
  set_thread_count(2);
  CHECK(train(data, options).weights_sha256 == one);
  options.save = dir / "run.safetensors";
  options.stop_after = 5;
  train(data, options);
  options.resume = options.save;
  options.stop_after = 0;
  CHECK(train(data, options).weights_sha256 == one);
  set_thread_count(0);
}

TEST_CASE("llama: packed trits write what the trained format does") {
  const TempDir dir;
  const Dataset data = repeated(dir, 30);
  TrainOptions options = by_heart("latent8");
  options.epochs = 1;
  options.save = dir / "run.safetensors";
  train(data, options);
  const SavedRun saved(options.save);
  const auto packed = load_for_generation(saved);
  LoadedModel loaded = load_model(saved);
  CHECK(logits_of(*packed, kTokens) == logits_of(dynamic_cast<Llama&>(*loaded.model), kTokens));
  for (const Parameter& parameter : packed->parameters()) {
    if (parameter.spec().role != Role::kWeight) continue;
    CAPTURE(parameter.name());
    CHECK(parameter.storage().spec().kind == FormatKind::kTrits);
  }
}

}  // namespace tritgrad::test::test_llama
