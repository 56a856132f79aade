// Training with products in integers, whole steps: the same bytes on every instruction set, for any
// number of threads, and whether gradients are read in tiles or kept; and as they were before.
#include <algorithm>
#include <utility>

#include "engine/hash.h"
#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "models/model.h"
#include "ops/loss.h"
#include "tests/support.h"

namespace tritgrad::test::test_integer_training {
namespace {

// All that a model and its optimizer hold after a few steps.
struct Trained {
  std::vector<std::byte> weights, state;

  bool operator==(const Trained&) const = default;
  std::string hash() const { return hex(xxh3(weights) ^ xxh3(state)); }
};

Trained trained(const std::string& recipe_name, const std::string& chosen, bool keep = false) {
  const Recipe recipe = load_recipe(recipe_name);
  REQUIRE(recipe.compute == Compute::kInt8);
  const auto model = make_model(chosen, 40, 5, recipe, 1);
  if (keep) model->parameters().keep_gradients();
  Optimizer optimizer = make_optimizer(*model, recipe, 6, 1);
  Tape tape;
  std::vector<float> x = numbers(36 * 40, 9);
  const std::vector<std::int32_t> labels = [] {
    std::vector<std::int32_t> all(36);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * 7 % 5);
    return all;
  }();
  for (int step = 0; step < 6; ++step) {
    const Var logits = model->forward(tape, {x.data(), {36, 40}}, {.training = true});
    const Var loss = softmax_cross_entropy(tape, logits, labels);
    tape.backward(loss, [&](Parameter& p) { optimizer.step(p); });
    optimizer.advance();
    tape.reset();
  }
  Trained result;
  for (const Parameter& p : model->parameters()) {
    const std::vector<std::byte> own = all_bytes(p.storage());
    result.weights.insert(result.weights.end(), own.begin(), own.end());
  }
  for (const StatePlane& plane : optimizer.state()) {
    result.state.insert(result.state.end(), plane.bytes.begin(), plane.bytes.end());
  }
  return result;
}

// Trained::hash() of what a recipe has trained, the same on every processor with the same C library
// (exp, log). A change that means to train otherwise puts here what the test prints, and says so in
// CHANGELOG.md.
struct Golden {
  const char* recipe;
  const char* perceptron;
  const char* convolutions;
};
constexpr Golden kGolden[] = {
    {"votes", "bd63aff56a4577d3", "05b27ba51339dff8"},
    {"latent8", "4f53847a3aede8b6", "a59cebce10d951e4"},
    {"latent6", "11ea820035663861", "b7572908d913abe5"},
    {"latent5", "cb6e6be8fe8739d5", "beb34a7c089442ff"},
    {"latent4", "3bc6a4c02167e00b", "d830cafd809c9d08"},
    {"shared4", "b2c86d56e481af72", "b3613514d4a0e9c7"},
    {"shared8", "331b4e6d3846c32f", "1d345c515ec3af70"},
    {"shared16", "f1e416a59f2f339f", "f2a53fd5388966dc"},
    {"trits", "363f4d11805116ed", "acc8b7ed3fd3391d"},
    {"eco", "9718740fa65b5dc5", "ba7b2557fcb1779e"},
    {"eco-sgdm", "7dceb4ca1f050a10", "89abe3b2816141d6"},
    {"eco-adam", "fdeb4f611fbbbdcb", "ae3b67b121c00650"},
    {"dqt", "4fdcd38b212b79f9", "e93a71bed0e2290b"},
    {"naive", "8f67a003754793b6", "6a0b451d0918ef1f"},
    {"microadam-ternary", "899500f52566fd0e", "bf129e6cd6944b92"},
};

const Golden& golden(const std::string& recipe) {
  const auto found = std::find_if(std::begin(kGolden), std::end(kGolden),
                                  [&](const Golden& g) { return g.recipe == recipe; });
  if (found == std::end(kGolden)) fail("recipe ", recipe, " has no golden hashes");
  return *found;
}

TEST_CASE("integer training: the recorded bytes, on every instruction set, for any threads") {
  const std::string before = kernels().name;
  struct Model {
    std::string name;
    const char* Golden::*hash;
  };
  for (const Model& model : {Model{"mlp:330,70", &Golden::perceptron},
                             Model{"conv:4x5x2-70-M-40-5", &Golden::convolutions}}) {
    for (const std::string& recipe : recipe_names()) {
      if (load_recipe(recipe).compute != Compute::kInt8) continue;
      CAPTURE(model.name);
      CAPTURE(recipe);
      use_kernels("reference");
      set_thread_count(1);
      const Trained expected = trained(recipe, model.name);
      CHECK(expected.hash() == std::string(golden(recipe).*model.hash));
      for (const KernelTable* table : supported_kernels()) {
        use_kernels(table->name);
        for (int threads : {1, 2}) {
          set_thread_count(threads);
          CAPTURE(table->name);
          CHECK(trained(recipe, model.name) == expected);
        }
        // The same in memory, without tiles; sums of products are rounded less often than floats,
        // which these few steps do not show.
        CHECK(trained(recipe, model.name, true).weights == expected.weights);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

}  // namespace
}  // namespace tritgrad::test::test_integer_training
