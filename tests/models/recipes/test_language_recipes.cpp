// The built-in recipes for language models: each is one of the others with some keys changed.
#include "engine/data/open_dataset.h"
#include "models/footprint.h"
#include "models/networks/model.h"
#include "models/training/train.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_language_recipes {

TEST_CASE("language recipes: each has the formats, the rules and the compute of its base") {
  for (const std::string& name : language_recipe_names()) {
    CAPTURE(name);
    REQUIRE(name.ends_with("-lm"));
    const std::string base_name = name.substr(0, name.size() - 3);
    CHECK(builtin_recipe_text(name).starts_with(concat("base = \"", base_name, "\"\n")));
    const Recipe recipe = load_recipe(name), base = load_recipe(base_name);
    CHECK(recipe.name == name);
    CHECK(recipe.summary.starts_with("language models: "));
    CHECK_FALSE(recipe.source.empty());
    CHECK(recipe.compute == base.compute);
    for (const Role role : {Role::kWeight, Role::kScale, Role::kNorm, Role::kBias}) {
      CHECK(recipe.group(role).format.kind == base.group(role).format.kind);
      CHECK(recipe.group(role).update.rule.kind == base.group(role).update.rule.kind);
    }
    CHECK(recipe.group(Role::kEmbedding).update.lr == 3e-3);
    CHECK(recipe.group(Role::kNorm).update.lr == 3e-3);
    // The text in a checkpoint is complete, and reads back as the same recipe.
    CHECK_FALSE(contains(recipe.toml, "base ="));
    CHECK(same_settings(parse_recipe(recipe.toml, "again"), recipe));
  }
}

TEST_CASE("language recipes: they are good files to start from, and good bases") {
  const TempDir folder;
  for (const std::string& name : language_recipe_names()) {
    CAPTURE(name);
    CHECK(same_settings(load_recipe(folder.write("mine.toml", builtin_recipe_text(name))),
                        load_recipe(name)));
    const Recipe mine = load_recipe(
        folder.write("mine.toml", concat("base = \"", name, "\"\n[weight]\nlr = 0.5\n")));
    CHECK(mine.name == "mine");
    CHECK(mine.group(Role::kWeight).update.lr == 0.5);
    CHECK(mine.group(Role::kNorm) == load_recipe(name).group(Role::kNorm));
  }
  CHECK(refusal([] { load_recipe("latent8-ml"); }) ==
        "unknown recipe 'latent8-ml'; give one that 'tritgrad recipes' lists (did you mean "
        "'latent8-lm'?) or the path of a .toml file");
}

TEST_CASE("language recipes: latent8-lm is what the experiments chose, in at most 1.1 bytes") {
  const Recipe recipe = load_recipe("latent8-lm");
  const Recipe::Group& weight = recipe.group(Role::kWeight);
  CHECK(weight.update.v.kind == FormatKind::kFactored);
  CHECK(weight.update.rule.beta2 == 0.99);
  CHECK(weight.update.rule.clip_direction == 2.5);
  CHECK(weight.format.flips.hysteresis == 8);
  CHECK(weight.update.lr == 0.05);
  CHECK(weight.update.schedule.kind == Schedule::Kind::kCosine);
  CHECK(recipe.gradients == GradientPolicy::kReleased);
  // Of matrices with 256 columns and their scales, as wide as a small language model.
  std::int64_t bytes = 0, weights = 0;
  const auto plan = plan_model("mlp:256-256-256-256:norm=none", 0, 0, recipe);
  for (const TensorFootprint& tensor : forecast_footprint(plan, recipe).tensors) {
    if (tensor.spec.role == Role::kWeight) weights += tensor.spec.shape.size();
    if (tensor.spec.role != Role::kBias) bytes += tensor.bytes.total();
  }
  CHECK(static_cast<double>(bytes) <= 1.1 * static_cast<double>(weights));
}

TEST_CASE("language recipes: a run has the same bits with any threads, and when continued") {
  const Dataset iris = open_dataset("iris", {});
  const TempDir folder;
  for (const std::string& name : language_recipe_names()) {
    CAPTURE(name);
    TrainOptions options;
    options.recipe = name;
    options.model = "mlp:300,200";
    options.batch = 60;
    options.epochs = 3;
    const std::string expected = train(iris, options).weights_sha256;
    set_thread_count(3);
    CHECK(train(iris, options).weights_sha256 == expected);
    set_thread_count(0);
    TrainOptions part = options;
    part.save = folder / "part.safetensors";
    part.stop_after = 3;
    train(iris, part);
    options.resume = part.save;
    CHECK(train(iris, options).weights_sha256 == expected);
  }
}

}  // namespace tritgrad::test::test_language_recipes
