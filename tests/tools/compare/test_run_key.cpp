// What the key of a cached run holds: whatever decides its result.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/data/open_dataset.h"
#include "engine/kernels/kernels.h"
#include "models/recipes/recipe.h"
#include "models/training/saved_run.h"
#include "models/training/trajectory.h"
#include "ops/products/dense_convolution.h"
#include "ops/products/dense_product.h"
#include "tests/support/byte_digits.h"
#include "tests/support/support_files.h"
#include "tools/compare/run_cache.h"

namespace tritgrad::test::test_run_key {
namespace {

using Json = nlohmann::json;

TrainSpec quick(const Dataset& dataset) {
  TrainSpec spec;
  spec.model = "mlp:8";
  spec.epochs = 3;
  return with_defaults(spec, dataset);
}

}  // namespace

TEST_CASE("run key: everything that decides the result is in it, threads are not") {
  const Dataset digits = open_dataset("digits");
  TrainSpec base = quick(digits);
  base.overrides = {"gradients=kept"};  // which micro-batches need
  const std::string hash = data_xxh3(digits);
  const auto key_of = [&](const Dataset& data, const std::string& data_hash,
                          const TrainSpec& options, RunPurpose purpose = RunPurpose::kTest) {
    return run_key(data, data_hash, options, purpose);
  };
  const auto key = [&](const TrainSpec& options, RunPurpose purpose = RunPurpose::kTest) {
    return key_of(digits, hash, options, purpose);
  };
  const std::string first = key(base);
  CHECK(key(base) == first);
  CHECK(key(base, RunPurpose::kTuning) != first);
  std::vector<std::pair<const char*, std::function<void(TrainSpec&)>>> changes = {
      {"model", [](TrainSpec& o) { o.model = "mlp:9"; }},
      {"recipe", [](TrainSpec& o) { o.recipe = "latent8"; }},
      {"override", [](TrainSpec& o) { o.overrides.push_back("weight.lr=0.123"); }},
      {"micro-batches", [](TrainSpec& o) { o.micro_batches = 2; }},
      {"augment", [](TrainSpec& o) { o.augment = "shift=1"; }},
      {"label smoothing", [](TrainSpec& o) { o.label_smoothing = 0.1; }},
      {"epochs", [](TrainSpec& o) { o.epochs = 4; }},
      {"batch", [](TrainSpec& o) { o.batch = 31; }},
      {"seed", [](TrainSpec& o) { o.seed = 2; }},
      {"folds", [](TrainSpec& o) { o.folds = 3; }},
      {"validation", [](TrainSpec& o) { o.validation = 0.2; }}};
  for (const auto& change : changes) {
    CAPTURE(change.first);
    TrainSpec other = base;
    change.second(other);
    CHECK(key(other) != first);
  }
  const Dataset bytes = byte_digits();
  TrainSpec roots = base;
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

TEST_CASE("run key: what decides the result of every recipe is in it") {
  const Dataset iris = open_dataset("iris");
  const std::string hash = data_xxh3(iris);
  const auto key = [&](const std::string& recipe, const std::string& change) {
    TrainSpec spec = quick(iris);
    spec.recipe = recipe;
    if (!change.empty()) spec.overrides = {change};
    return run_key(iris, hash, spec, RunPurpose::kTest);
  };
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    const Recipe::Group& weight = recipe.group(Role::kWeight);
    const RuleSpec& rule = weight.update.rule;
    const std::string built_in = key(name, "");
    const auto seen = [&](const char* setting, const auto& value) {
      CAPTURE(setting);
      CHECK(key(name, fmt::format("weight.{}={}", setting, value)) != built_in);
    };
    using enum RuleKind;
    seen("lr", 0.99 * weight.update.lr);
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

TEST_CASE("run key: the data's name, the program, its kernels and all of the recipe are in it") {
  const Dataset iris = open_dataset("iris");
  TrainSpec options = quick(iris);
  const auto key = [&] {
    return Json::parse(run_key(iris, data_xxh3(iris), options, RunPurpose::kTest));
  };
  const Json first = key();
  CHECK(first["name"] == "iris");
  CHECK(first["tritgrad"] == TRITGRAD_VERSION);
  CHECK(first["trajectory"] == Json{kTrajectory.integer, kTrajectory.flash});
  CHECK(first["kernels"] == kernels().name);
  CHECK(first["float_products"] == dense_product_library());
  // Said of convolutions in floats alone.
  CHECK(!first.contains("float_convolutions"));
  const auto convolution_of = [&](const char* recipe) {
    TrainSpec convolution = options;
    convolution.model = "conv:8";
    convolution.recipe = recipe;
    return Json::parse(run_key(iris, data_xxh3(iris), convolution, RunPurpose::kTest));
  };
  CHECK(convolution_of("fp32")["float_convolutions"] == dense_convolution_library());
  CHECK(!convolution_of("latent8").contains("float_convolutions"));
  // A factor at the end, a rule's setting that it does not read.
  const auto recipe_of = [&](const char* change) {
    options.overrides = {change};
    return key()["recipe"];
  };
  CHECK(recipe_of("norm.final=0.1") != first["recipe"]);
  CHECK(recipe_of("bias.beta2=0.9991") != first["recipe"]);
  // Schedules that are equal in a run of 100 steps.
  CHECK(recipe_of("norm.warmup=0.05") != recipe_of("norm.warmup=0.055"));
  // A default that is written out is the same recipe, alone and beside a setting that is none.
  CHECK(recipe_of("bias.beta2=0.999") == first["recipe"]);
  const Json warm = recipe_of("norm.warmup=0.05");
  options.overrides = {"bias.beta2=0.999", "norm.warmup=0.05"};
  CHECK(key()["recipe"] == warm);
}

TEST_CASE("run key: groups of single parameters are in it") {
  const Dataset iris = open_dataset("iris");
  const TempDir folder;
  const auto key = [&](const std::string& group) {
    TrainSpec options = quick(iris);
    options.recipe = folder / "r.toml";
    write_text(options.recipe,
               "base = \"votes\"\n[[group]]\nmatch = \"head.*\"\nformat = \"bf16\"\n" + group);
    return Json::parse(run_key(iris, data_xxh3(iris), options, RunPurpose::kTest));
  };
  const Json adamw = key("rule = \"adamw\"\n");
  CHECK(adamw["recipe"] != key("rule = \"adamw\"\nbeta2 = 0.99\n")["recipe"]);
  const Json warm = key("rule = \"adamw\"\nwarmup = 0.5\n");
  CHECK(adamw["recipe"] != warm["recipe"]);
}

}  // namespace tritgrad::test::test_run_key
