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

namespace tritgrad::test {
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
    {"votes", "8fa477cf490aa23b", "4d919b77b6564071"},
    {"latent8", "d80e7178e2e8327d", "049ac5c90928c725"},
    {"latent6", "f1a332c588c59fd7", "db6d4b4bdc4a3f6f"},
    {"latent5", "29d957e0885c201b", "89d6a28393136277"},
    {"latent4", "c299fd1b5900d8f6", "0f9f53ceb8a6fd88"},
    {"bands4", "c911c7743e578db9", "ecd7091919ba5d92"},
    {"bands8", "65ddd20750503e67", "347b67f21d1f1bfe"},
    {"trits", "604123e8438d6458", "350fb560a54359fd"},
    {"eco", "395bd789609e89ba", "be0334c1b638abb4"},
    {"eco-sgdm", "5114f03eb56a39ad", "01e32bedcabc49f6"},
    {"eco-adam", "b50ced33a8e1779c", "526479299baf0337"},
    {"dqt", "535b00abcbbdef85", "9fc04d043b459a29"},
    {"naive", "7beb809c1db00f12", "d1fd06578bc962ba"},
    {"microadam-ternary", "8a6f0e56194839ac", "a70be11187425a18"},
};

const Golden& golden(const std::string& recipe) {
  const auto found = std::find_if(std::begin(kGolden), std::end(kGolden),
                                  [&](const Golden& g) { return g.recipe == recipe; });
  if (found == std::end(kGolden)) fail("recipe ", recipe, " has no golden hashes");
  return *found;
}

TEST_CASE("integer training: the recorded bytes, on every instruction set, for any threads") {
  const std::string before = kernels().name;
  const std::pair<std::string, const char * Golden::*> models[] = {
      {"mlp:330,70", &Golden::perceptron}, {"conv:4x5x2-70-M-40-5", &Golden::convolutions}};
  for (const auto& [model, hash] : models) {
    for (const std::string& recipe : recipe_names()) {
      if (load_recipe(recipe).compute != Compute::kInt8) continue;
      CAPTURE(model);
      CAPTURE(recipe);
      use_kernels("reference");
      set_thread_count(1);
      const Trained expected = trained(recipe, model);
      CHECK(expected.hash() == std::string(golden(recipe).*hash));
      for (const KernelTable* table : supported_kernels()) {
        use_kernels(table->name);
        for (int threads : {1, 2}) {
          set_thread_count(threads);
          CAPTURE(table->name);
          CHECK(trained(recipe, model) == expected);
        }
        // The same in memory, without tiles, which add up mean squares in another order.
        CHECK(trained(recipe, model, true).weights == expected.weights);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

}  // namespace
}  // namespace tritgrad::test
