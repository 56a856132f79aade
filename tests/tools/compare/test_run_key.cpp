// What the key of a cached run holds: whatever decides its result, code included.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/data/open_dataset.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "models/recipes/recipe.h"
#include "models/training/training_state.h"
#include "ops/products/dense_product.h"
#include "tests/support/byte_digits.h"
#include "tests/support/support_files.h"
#include "tools/compare/run_cache.h"

namespace tritgrad::test::test_run_key {
namespace {

using Json = nlohmann::json;

TrainOptions quick(const Dataset& dataset) {
  TrainOptions options;
  options.model = "mlp:8";
  options.epochs = 3;
  options.quiet = true;
  return with_defaults(options, dataset);
}

}  // namespace

TEST_CASE("run key: everything that decides the result is in it, threads are not") {
  const Dataset digits = open_dataset("digits");
  TrainOptions base = quick(digits);
  base.overrides = {"gradients=kept"};  // which micro-batches need
  const std::string hash = data_xxh3(digits);
  // Without the fingerprint, which would hide that something is missing.
  const auto key_of = [&](const Dataset& data, const std::string& data_hash,
                          const TrainOptions& options, RunPurpose purpose = RunPurpose::kTest) {
    Json json = Json::parse(run_key(data, data_hash, options, purpose));
    CHECK(json.erase("fingerprint") == 1);
    return json.dump();
  };
  const auto key = [&](const TrainOptions& options, RunPurpose purpose = RunPurpose::kTest) {
    return key_of(digits, hash, options, purpose);
  };
  const std::string first = key(base);
  CHECK(key(base) == first);
  CHECK(key(base, RunPurpose::kTuning) != first);
  std::vector<std::pair<const char*, std::function<void(TrainOptions&)>>> changes = {
      {"model", [](TrainOptions& o) { o.model = "mlp:9"; }},
      {"recipe", [](TrainOptions& o) { o.recipe = "latent8"; }},
      {"override", [](TrainOptions& o) { o.overrides.push_back("weight.lr=0.123"); }},
      {"micro-batches", [](TrainOptions& o) { o.micro_batches = 2; }},
      {"augment", [](TrainOptions& o) { o.augment = "shift=1"; }},
      {"label smoothing", [](TrainOptions& o) { o.label_smoothing = 0.1; }},
      {"epochs", [](TrainOptions& o) { o.epochs = 4; }},
      {"batch", [](TrainOptions& o) { o.batch = 31; }},
      {"seed", [](TrainOptions& o) { o.seed = 2; }},
      {"folds", [](TrainOptions& o) { o.folds = 3; }},
      {"validation", [](TrainOptions& o) { o.validation = 0.2; }}};
  for (const auto& change : changes) {
    CAPTURE(change.first);
    TrainOptions other = base;
    change.second(other);
    CHECK(key(other) != first);
  }
  const Dataset bytes = byte_digits();
  TrainOptions roots = base;
  roots.pixels = PixelScale::kSquareRoot;
  CHECK(key_of(bytes, hash, roots) != key_of(bytes, hash, base));
  Dataset changed = open_dataset("digits");
  changed.image = {4, 16, 1};
  CHECK(key_of(changed, hash, base) != first);
  changed.image = digits.image;
  changed.published_test_rows = 300;
  CHECK(key_of(changed, hash, base) != first);
  changed.published_test_rows = digits.published_test_rows;
  CHECK(key_of(changed, hash, base) == first);
  changed.values.bytes()[3] ^= std::byte{1};
  CHECK(key_of(changed, data_xxh3(changed), base) != first);
}

TEST_CASE("run key: the fingerprint has weights, moments, an accuracy, bytes; no thread count") {
  const Dataset iris = open_dataset("iris");
  TrainOptions options = quick(iris);
  const auto key = [&] { return run_key(iris, data_xxh3(iris), options, RunPurpose::kTest); };
  const int threads = thread_count();
  set_thread_count(1);
  const std::string alone = key();
  set_thread_count(2);
  CHECK(key() == alone);
  set_thread_count(threads);
  const Json fingerprint = Json::parse(alone)["fingerprint"];
  // All 120 training rows are tested, after three steps.
  Split split = split_of(iris, options, 0);
  split.test = split.train;
  options.stop_after = 3;
  // Of 12 steps the first three have a third, two thirds and all of a rate at which trits flip.
  CHECK(split.train.size() * static_cast<std::size_t>(options.epochs) == 12 * 30);
  Recipe recipe = load_recipe(options.recipe, options.overrides);
  for (Recipe::Group& group : recipe.groups) {
    group.update.schedule = {.warmup = 1.0};
    group.update.lr *= 12.0 / 3.0;
  }
  recipe.groups[static_cast<std::size_t>(Role::kWeight)].update.lr = 0.5 * 12.0 / 3.0;
  const RunResult run = train(iris, split, options, recipe);
  CHECK(run.flips_per_step > 0.0);
  CHECK(fingerprint["weights"] == run.weights_sha256);
  CHECK(fingerprint["optimizer"] == run.optimizer_sha256);
  CHECK(fingerprint["accuracy"] == *run.test_accuracy);
  CHECK(fingerprint["bytes_per_parameter"] == run.bytes_per_parameter.total());
  CHECK(fingerprint["peak_live_bytes"] == run.peak_live_bytes);
}

// Settings of an update stand in for its code: whoever changes either must not find older runs.
TEST_CASE("run key: the fingerprint sees what every recipe's rule and format do") {
  const Dataset iris = open_dataset("iris");
  const std::string hash = data_xxh3(iris);
  const auto fingerprint = [&](const std::string& recipe, const std::string& change) {
    TrainOptions options = quick(iris);
    options.recipe = recipe;
    if (!change.empty()) options.overrides = {change};
    return Json::parse(run_key(iris, hash, options, RunPurpose::kTest))["fingerprint"];
  };
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    const Recipe::Group& weight = recipe.group(Role::kWeight);
    const RuleSpec& rule = weight.update.rule;
    const Json built_in = fingerprint(name, "");
    REQUIRE(built_in != "diverged");
    const auto seen = [&](const char* key, const auto& value) {
      CAPTURE(key);
      CHECK(fingerprint(name, fmt::format("weight.{}={}", key, value)) != built_in);
    };
    using enum RuleKind;
    if (rule.momentum > 0.0) seen("momentum", 0.99 * rule.momentum);
    if (rule.kind == kAdam || rule.kind == kAdamw) seen("beta1", 0.99 * rule.beta1);
    if (rule.kind == kAdam || rule.kind == kAdamw || rule.kind == kLion ||
        rule.kind == kNormalized) {
      seen("beta2", 0.99 * rule.beta2);
    }
    if (rule.kind == kMicroadam) seen("density", 0.5);
    if (weight.update.eco != EcoForm::kOff) {
      seen("eco", weight.update.eco == EcoForm::kRescaled ? "published" : "rescaled");
    }
    if (weight.format.kind == FormatKind::kTernary) seen("threshold", 30);
    if (weight.format.traits().holds_trits) {
      seen("rounding", weight.format.rounding == Rounding::kNearest ? "stochastic" : "nearest");
    }
  }
}

TEST_CASE(
    "run key: the data's name, the program, its kernels and the recipe's defaults are in it") {
  const Dataset iris = open_dataset("iris");
  TrainOptions options = quick(iris);
  const auto key = [&] {
    return Json::parse(run_key(iris, data_xxh3(iris), options, RunPurpose::kTest));
  };
  const Json first = key();
  CHECK(first["name"] == "iris");
  CHECK(first["tritgrad"] == TRITGRAD_VERSION);
  CHECK(first["kernels"] == kernels().name);
  CHECK(first["float_products"] == dense_product_library());
  // What the first steps do not see: a factor at the end, a rule's setting that it does not read.
  const auto recipe_of = [&](const char* change) {
    options.overrides = {change};
    return key()["recipe"];
  };
  CHECK(recipe_of("norm.final=0.1") != first["recipe"]);
  CHECK(recipe_of("bias.beta2=0.9991") != first["recipe"]);
  // Schedules that are equal in a run of 100 steps.
  CHECK(recipe_of("norm.warmup=0.05") != recipe_of("norm.warmup=0.055"));
  // A default that is written out is the same recipe.
  CHECK(recipe_of("bias.beta2=0.999") == first["recipe"]);
}

TEST_CASE("run key: groups of single parameters are in it, and in haste as well") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  const auto key = [&](const std::string& group) {
    TrainOptions options = quick(iris);
    options.recipe = folder / "r.toml";
    write_text(options.recipe,
               "base = \"votes\"\n[[group]]\nmatch = \"head.*\"\nformat = \"bf16\"\n" + group);
    return Json::parse(run_key(iris, data_xxh3(iris), options, RunPurpose::kTest));
  };
  const Json adamw = key("rule = \"adamw\"\n");
  CHECK(adamw["recipe"] != key("rule = \"adamw\"\nbeta2 = 0.99\n")["recipe"]);
  CHECK(adamw["fingerprint"] != key("rule = \"adamw\"\nbeta2 = 0.99\n")["fingerprint"]);
  const Json warm = key("rule = \"adamw\"\nwarmup = 0.5\n");
  CHECK(adamw["recipe"] != warm["recipe"]);
  CHECK(adamw["fingerprint"] == warm["fingerprint"]);
}

}  // namespace tritgrad::test::test_run_key
