// What a user of the installed library writes (the loop of README.md): trains a ternary network.
#include <cstdio>

#include "engine/data/loader.h"
#include "engine/data/open_dataset.h"
#include "engine/data/split.h"
#include "models/networks/model.h"
#include "ops/loss.h"

using namespace tritgrad;

int main() {
  const Dataset data = open_dataset("wdbc");
  const Split split = fixed_split(data);
  Loader loader(data, split.train, Standardizer::fit(data, split.train), 32, 1,
                RowOrder::kShuffled);
  const Recipe recipe = load_recipe("latent8");
  const auto model = make_model("mlp:64,64", data, data.classes(), recipe, 1);
  Optimizer optimizer = make_optimizer(*model, recipe, 300, 1);
  Tape tape;
  float last = 0.0f;
  for (int step = 1; step <= 300; ++step, optimizer.advance(), tape.reset()) {
    const Batch batch = loader.next();
    const Var logits = model->forward(tape, batch.x, {.training = true});
    const Var loss = softmax_cross_entropy(tape, logits, batch.labels);
    tape.backward(loss, [&](Parameter& parameter) { optimizer.step(parameter); });
    last = loss.value.data[0];
    if (step % 100 == 0) std::printf("step %d  loss %.4f\n", step, static_cast<double>(last));
  }
  // ln 2 = 0.69 is what guessing costs.
  return last < 0.4f ? 0 : 1;
}
