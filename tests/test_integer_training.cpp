// Training with products in integers, whole steps: the same bytes on every instruction set, for any
// number of threads, and whether gradients are read in tiles or kept.
#include "engine/hash.h"
#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "models/model.h"
#include "ops/loss.h"
#include "tests/support.h"

namespace tritgrad::test {
namespace {

// All that a model holds after a few steps.
std::vector<std::byte> trained(const char* recipe_name, const char* chosen, bool keep = false) {
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
  std::vector<std::byte> bytes;
  for (const Parameter& p : model->parameters()) {
    const std::vector<std::byte> own = all_bytes(p.storage());
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

// XXH3 of what a recipe has trained, the same on every processor. A change that means to train
// otherwise puts here what the test prints, and says so in CHANGELOG.md.
struct Golden {
  std::string recipe, perceptron, convolutions;
};
const Golden kGolden[] = {
    {"votes", "e0eccf612a3e2cb5", "29c98b99956b908f"},
    {"latent8", "f962a5515a99bf7d", "407f21b2cd262680"},
    {"latent6", "5120cf4613cd6dde", "c7d9d6aedb01bdc0"},
    {"latent5", "ffc38ca0d8f60022", "228f11e176cb6c66"},
    {"latent4", "b7f7d85db82b2224", "c3895e1de2fc495e"},
    {"bands4", "c1ef59a84d538815", "1fb36c4b336c2e8b"},
    {"trits", "49e46c1baec07980", "073e968c8b00d352"},
    {"eco", "2132f9366fb3abfd", "d305d335a8568d8a"},
    {"eco-adam", "fdb78af913cf6ceb", "c41b1e74877c48f8"},
    {"dqt", "a94d29e21dfca01c", "d50e89c1075e6226"},
    {"microadam-ternary", "50df78100593c53f", "ae585bbc14c77c8f"},
};

TEST_CASE("integer training: it gives the same bytes on every instruction set, any threads") {
  const std::string before = kernels().name;
  for (const char* model : {"mlp:330,70", "conv:4x5x2-70-M-40-5"}) {
    for (const Golden& golden : kGolden) {
      const char* recipe = golden.recipe.c_str();
      CAPTURE(std::string(model));
      CAPTURE(golden.recipe);
      use_kernels("reference");
      set_thread_count(1);
      const std::vector<std::byte> expected = trained(recipe, model);
      CHECK(hex(xxh3(expected)) == (model[0] == 'm' ? golden.perceptron : golden.convolutions));
      for (const KernelTable* table : supported_kernels()) {
        use_kernels(table->name);
        for (int threads : {1, 2}) {
          set_thread_count(threads);
          CAPTURE(table->name);
          CHECK(trained(recipe, model) == expected);
        }
        // The same in memory, without tiles.
        CHECK(trained(recipe, model, true) == expected);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

}  // namespace
}  // namespace tritgrad::test
