// The embeddings and the head of language models: a role with a table of its own in recipes.
#include <cmath>

#include "models/recipes/recipe.h"
#include "optim/optimizer.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_embedding_role {
namespace {

const Shape kTable{256, 48};

ParameterSpec table_of(const Recipe& recipe, const char* name) {
  return {name,
          Role::kEmbedding,
          kTable,
          recipe.group(name, Role::kEmbedding).format,
          {Initial::Kind::kNormal, 0.02f}};
}

}  // namespace

TEST_CASE("embedding role: every built-in recipe trains it as [continuous] says") {
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    CHECK(recipe.group(Role::kEmbedding) == recipe.group(Role::kNorm));
    CHECK(recipe.group(Role::kEmbedding).format.kind == FormatKind::kFp32);
    // Nothing is written of it, so that texts in older checkpoints read the same.
    CHECK_FALSE(contains(recipe.toml, "embedding"));
  }
}

TEST_CASE("embedding role: a table of its own begins from [continuous]") {
  const Recipe recipe = load_recipe(
      "latent8", {"embedding.format=split24", "embedding.lr=0.003", "continuous.warmup=0.125"});
  const Recipe::Group& group = recipe.group(Role::kEmbedding);
  CHECK(group.format.kind == FormatKind::kSplit24);
  CHECK(group.update.lr == 0.003);
  CHECK(group.update.schedule.warmup == 0.125);
  CHECK(recipe.group(Role::kNorm).update.lr == load_recipe("latent8").group(Role::kNorm).update.lr);
  CHECK(same_settings(parse_recipe(recipe.toml, "again"), recipe));
  CHECK_FALSE(same_settings(load_recipe("latent8", {"continuous.warmup=0.125"}), recipe));
}

TEST_CASE("embedding role: a [[group]] may name it, and groups of weights leave it alone") {
  const TempDir folder;
  const Recipe recipe = load_recipe(folder.write("mine.toml", R"(base = "latent8"
[[group]]
match = "head.*"
role = "embedding"
format = "bf16"
[[group]]
match = "*"
format = "fp32"
rule = "sgd"
)"));
  CHECK(recipe.group("head.weight", Role::kEmbedding).format.kind == FormatKind::kBf16);
  CHECK(recipe.group("embedding.weight", Role::kEmbedding) == recipe.group(Role::kEmbedding));
}

TEST_CASE("embedding role: head_lr is of heads that are weights") {
  const Recipe recipe = load_recipe("votes", {"weight.head_lr=0.5"});
  const Optimizer::GroupOf group_of = recipe.updates();
  const auto lr = [&](Role role) {
    return group_of({std::string(kHeadMatrix), role, kTable, {}, {}}).lr;
  };
  CHECK(lr(Role::kEmbedding) == recipe.group(Role::kEmbedding).update.lr);
  CHECK(lr(Role::kWeight) == 0.5 * recipe.group(Role::kWeight).update.lr);
}

TEST_CASE("embedding role: formats that want a scale beside them are refused") {
  CHECK(refusal([] { load_recipe("latent8", {"embedding.format=latent8"}); }) ==
        "recipe 'latent8', [embedding]: format = 'latent8' is for weights only; use one of fp32, "
        "bf16, split24, split32, fp8, int8, int4");
  CHECK(contains(refusal([] { load_recipe("latent8", {"embeding.lr=1"}); }),
                 "unknown key 'embeding'; did you mean 'embedding'?"));
}

TEST_CASE("embedding role: its tables count as parameters, and every format of theirs is trained") {
  for (const char* format : {"fp32", "bf16", "split24", "split32", "fp8", "int8", "int4"}) {
    CAPTURE(format);
    const Recipe recipe = load_recipe("latent8", {concat("embedding.format=", format)});
    ParameterStore store;
    Parameter& table = store.add(table_of(recipe, "embedding.weight"), 1);
    CHECK(store.parameter_count() == kTable.size());
    for (const Plane& plane : table.storage().planes()) {
      if (plane.spec.inference) CHECK(plane.spec.category == Category::kWeights);
    }
    // Towards 0.5 from about 0. The gradient falls from 0.5 to 0.4: AdamW's direction stays within
    // 0.05 of 1, and the cosine's ten factors are 5.5 together. Rounding by chance has the mean
    // of what is rounded.
    Optimizer optimizer(store, recipe.updates(), 10, 1);
    store.keep_gradients();
    std::vector<float> value(static_cast<std::size_t>(kTable.size()));
    for (int step = 0; step < 10; ++step) {
      table.storage().decode_rows(0, kTable.rows(), value.data());
      for (std::size_t i = 0; i < value.size(); ++i) table.grad.data[i] = value[i] - 0.5f;
      optimizer.step();
      optimizer.advance();
    }
    table.storage().decode_rows(0, kTable.rows(), value.data());
    double mean = 0.0;
    for (const float v : value) mean += v / static_cast<double>(value.size());
    const double expected = 5.5 * recipe.group(Role::kEmbedding).update.lr;
    CHECK(std::abs(mean - expected) < 0.05 * expected);
  }
}

}  // namespace tritgrad::test::test_embedding_role
