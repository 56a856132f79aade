#include "models/training/predict.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "models/networks/llama.h"

namespace tritgrad {

std::vector<float> predict_logits(const LoadedModel& loaded, const Dataset& dataset,
                                  std::span<const std::int32_t> rows) {
  check(context_of(loaded.plan.model) == 0,
        "the model tells the next token of a text, and predicts nothing of rows");
  const auto task = make_task(dataset, loaded.standardizer, loaded.target_scale);
  Loader loader = task->test_batches(rows);
  Tape tape;
  tape.set_recording(false);
  std::vector<float> all;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Tensor logits = loaded.model->forward(tape, loader.next().x, {}).value;
    all.insert(all.end(), logits.values().begin(), logits.values().end());
    tape.reset();
  }
  return all;
}

std::vector<double> predict_values(const LoadedModel& loaded, const Dataset& dataset,
                                   std::span<const std::int32_t> rows) {
  check(loaded.is_regression, "predict_values: the model has ", loaded.plan.outputs,
        " classes; ask for its logits");
  std::vector<double> values;
  for (const float output : predict_logits(loaded, dataset, rows)) {
    values.push_back(loaded.target_scale.in_units(output));
  }
  return values;
}

void softmax_of_row(const float* logits, std::int64_t classes, float* probabilities) {
  const double largest = static_cast<double>(*std::max_element(logits, logits + classes));
  double sum = 0.0;
  for (std::int64_t i = 0; i < classes; ++i) {
    sum += std::exp(static_cast<double>(logits[i]) - largest);
  }
  for (std::int64_t i = 0; i < classes; ++i) {
    probabilities[i] = static_cast<float>(std::exp(static_cast<double>(logits[i]) - largest) / sum);
  }
}

}  // namespace tritgrad
