// A program that uses the installed library (that of README.md): trains a ternary network.
#include <cstdio>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"

using namespace tritgrad;

struct Printer : Observer {
  void epoch(const EpochPoint& point) override {
    std::printf("epoch %2.0f  loss %.4f\n", point.epoch, point.train_loss);
  }
};

int main() {
  Printer printer;
  TrainOptions options;
  options.model = "mlp:64,64";
  options.recipe = "latent8";
  options.epochs = 20;
  options.observer = &printer;
  const RunResult run = train(open_dataset("wdbc"), options);
  std::printf("test accuracy %.1f %% with %.2f bytes a parameter\n", 100.0 * *run.test_score,
              run.bytes_per_parameter.total());
  return *run.test_score > 0.9 ? 0 : 1;
}
