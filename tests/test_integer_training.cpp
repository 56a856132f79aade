// Training with products in integers, whole steps: the same bytes on every instruction set, for any
// number of threads, and whether gradients are read in tiles or kept.
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

TEST_CASE("integer training: it gives the same bytes on every instruction set, any threads") {
  const std::string before = kernels().name;
  for (const char* model : {"mlp:330,70", "conv:4x5x2-70-M-40-5"}) {
    for (const char* recipe :
         {"votes", "latent8", "latent4", "trits", "eco", "microadam-ternary"}) {
      CAPTURE(model);
      CAPTURE(recipe);
      use_kernels("reference");
      set_thread_count(1);
      const std::vector<std::byte> expected = trained(recipe, model);
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
