// Recipes in which parameters of one model are stored and trained in different ways.
#include <fstream>

#include "engine/data/open_dataset.h"
#include "models/networks/model.h"
#include "models/training/train.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_mixtures {
namespace {

constexpr const char* kMixture = R"(base = "votes"
name = "mixture"
[scale]
rule = "microadam"
density = 0.2
[[group]]
match = "head.*"
format = "split24"
rule = "adamw"
m = "companded8"
v = "root8"
lr = 2e-3
[[group]]
match = "layers.1.weight"
format = "latent8"
rule = "normalized"
lr = 0.06
[[group]]
match = "*.norm.gain"
role = "norm"
rule = "lion"
lr = 1e-3
)";

std::string recipe_file(const TempDir& folder, const std::string& text) {
  const std::string path = (folder.path() / "mixture.toml").string();
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("mixtures: each parameter has the format and the rule of the last table that matches") {
  const TempDir folder;
  const Recipe recipe = load_recipe(recipe_file(folder, kMixture));
  const auto format = [&](const char* name) {
    return recipe.group(name, Role::kWeight).format.kind;
  };
  CHECK(format("layers.0.weight") == FormatKind::kTernary);
  CHECK(format("layers.1.weight") == FormatKind::kLatent8);
  CHECK(format("head.weight") == FormatKind::kSplit24);
  CHECK(recipe.group("layers.0.scale", Role::kScale).update.rule.kind == RuleKind::kMicroadam);
  CHECK(recipe.group("layers.0.norm.gain", Role::kNorm).update.rule.kind == RuleKind::kLion);
  // What a table of its own leaves out comes from [continuous], for all but weights.
  CHECK(recipe.group("layers.0.norm.gain", Role::kNorm).update.schedule.kind ==
        Schedule::Kind::kCosine);
  CHECK(recipe.group("layers.0.norm.bias", Role::kNorm).update.rule.kind == RuleKind::kAdamw);
  CHECK(recipe.group("head.bias", Role::kBias).format.kind == FormatKind::kFp32);

  // A head without trits has no scale.
  for (const ParameterSpec& spec : plan_model("mlp:8-16-16-3", 0, 0, recipe)) {
    CHECK(spec.name != "head.scale");
  }
  CHECK(parse_recipe(recipe.toml, "again").toml == recipe.toml);
}

TEST_CASE("mixtures: one run, one checkpoint, continued with the same bits") {
  const TempDir folder;
  TrainOptions options;
  options.recipe = recipe_file(folder, kMixture);
  options.model = "mlp:48,32";
  options.data = "iris";
  options.epochs = 12;
  options.batch = 32;
  const Dataset iris = open_dataset("iris", {});
  const RunResult whole = train(iris, options);
  // 28 of 30, of which it has all here: floats round otherwise elsewhere. Guessing gives 10.
  CHECK(whole.test_score.value() >= 0.93);

  options.save = (folder.path() / "half.safetensors").string();
  options.stop_after = 19;
  train(iris, options);
  options.stop_after = 0;
  options.resume = options.save;
  CHECK(train(iris, options).weights_sha256 == whole.weights_sha256);
}

TEST_CASE("mixtures: tables that fit nothing or contradict themselves are refused") {
  const TempDir folder;
  const auto message = [&](const std::string& text) {
    return refusal([&] {
      plan_model("mlp:8-16-3", 0, 0,
                 load_recipe(recipe_file(folder, "base = \"votes\"\nname = \"x\"\n" + text)));
    });
  };
  CHECK(contains(message("[[group]]\nmatch = \"haed.*\"\nformat = \"fp32\"\nrule = \"adamw\"\n"),
                 "match = \"haed.*\" fits no parameter of model 'mlp:8-16-3' with role weight"));
  CHECK(contains(message("[[group]]\nformat = \"fp32\"\n"), "'match' is missing"));
  CHECK(
      contains(message("[[group]]\nmatch = \"head.*\"\nrole = \"bais\"\n"), "did you mean 'bias'"));
  CHECK(contains(message("[[group]]\nmatch = \"head.*\"\nlrr = 1\n"), "did you mean 'lr'"));
  CHECK(contains(message("[group]\nmatch = \"head.*\"\n"), "written [[group]]"));
  CHECK(contains(message("[[group]]\nmatch = \"head.*\"\neco = \"published\"\nformat = \"fp32\"\n"),
                 "keeps its own residual"));
  CHECK(contains(message("[[group]]\nmatch = \"head.*\"\nm = \"root8\"\n"),
                 "cannot hold a momentum"));
  CHECK(contains(message("[[group]]\nmatch = \"head.*\"\nv = \"int8\"\n"),
                 "cannot hold a mean of squares"));
  CHECK(contains(message("[[group]]\nmatch = \"head.*\"\nformat = \"factored\"\n"),
                 "is for moments"));
}

TEST_CASE("mixtures: patterns") {
  CHECK(matches("head.weight", "head.weight"));
  CHECK_FALSE(matches("head.weight", "head.weights"));
  CHECK(matches("*", ""));
  CHECK(matches("layers.*.weight", "layers.10.weight"));
  CHECK_FALSE(matches("layers.*.weight", "layers.10.bias"));
  CHECK(matches("*.norm.*", "layers.0.norm.gain"));
  CHECK_FALSE(matches("", "x"));
}

}  // namespace tritgrad::test::test_mixtures
