// Training with products in integers, whole steps: the same bytes on every instruction set, for any
// number of threads, and whether gradients are read in tiles or kept; and as they were before.
#include <algorithm>
#include <utility>

#include "engine/files/hash.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "models/networks/model.h"
#include "models/training/trajectory.h"
#include "ops/loss.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_integer_training {
namespace {

// All that a model and its optimizer hold after a few steps.
struct Trained {
  std::vector<std::byte> weights, state;

  bool operator==(const Trained&) const = default;
  std::string hash() const {
    std::vector<std::byte> all = weights;
    all.insert(all.end(), state.begin(), state.end());
    return hex(xxh3(all));
  }
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
  for (const NamedArray& plane : optimizer.state()) {
    result.state.insert(result.state.end(), plane.bytes.begin(), plane.bytes.end());
  }
  return result;
}

// Trained::hash() of what a recipe has trained, the same on every processor with the same C library
// (exp, log). A change that means to train otherwise puts here, and into kTrajectory, what the test
// prints, and says so in CHANGELOG.md.
struct Golden {
  const char* recipe;
  const char* perceptron;
  const char* convolutions;
};
constexpr Golden kGolden[] = {
    {"votes", "844683ca2e38e059", "b920eb577265332d"},
    {"latent8", "f23720d573767d5c", "76655d65eba04815"},
    {"latent6", "e0680199de1b897f", "fce6bebaaeaf81ec"},
    {"latent5", "07e35bb0f95ee6f4", "4e7adc2c8a8e3c97"},
    {"latent4", "9fcc31ee72c4bc38", "33aaee1596c99e7f"},
    {"shared4", "49d6efe82a320ea2", "5543dac078ad78ab"},
    {"shared8", "ad471db20f2f1e64", "31e4fd2d5b4ad33d"},
    {"shared16", "1d13a44777d27da6", "fb88f000bbd79959"},
    {"trits", "21426c143dc02b57", "6f16bc12a8623255"},
    {"eco", "5e199127a6b9ec77", "9e4a7453390533e8"},
    {"eco-sgdm", "3ff6d3342818b047", "9edb9cb316052e6c"},
    {"eco-adam", "251f602eddac3c39", "4c1392306a6f2200"},
    {"dqt", "406afd8730e27163", "058dfe88a3387a9f"},
    {"naive", "7cbf65fc1ca7459f", "6017a9b51d400bdb"},
    {"microadam-ternary", "cac5ef3b2c24616a", "71b9672a002e7672"},
    {"wage", "ee8c58d1689a38bf", "402406bb0f478abd"},
};

const Golden& golden(const std::string& recipe) {
  const auto found = std::find_if(std::begin(kGolden), std::end(kGolden),
                                  [&](const Golden& g) { return g.recipe == recipe; });
  if (found == std::end(kGolden)) fail("recipe ", recipe, " has no golden hashes");
  return *found;
}

TEST_CASE("integer training: the recorded bytes, on every instruction set, for any threads") {
  const std::string before = kernels().name;
  std::string measured;
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
      measured += expected.hash();
      for (const KernelTables* table : supported_kernels()) {
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
  CHECK(hex(xxh3(std::as_bytes(std::span(measured)))) == std::string(kTrajectory.integer));
}

}  // namespace
}  // namespace tritgrad::test::test_integer_training
