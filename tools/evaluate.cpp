#include "tools/evaluate.h"

#include "engine/loader.h"
#include "ops/loss.h"

namespace tritgrad {

std::optional<double> evaluate(Model& model, const Dataset& dataset,
                               const std::vector<std::int32_t>& rows,
                               const Standardizer& standardizer) {
  if (rows.empty()) return std::nullopt;
  constexpr std::int64_t kBatch = 256;
  const auto count = static_cast<std::int64_t>(rows.size());
  Loader loader(dataset, rows, standardizer, kBatch, 0, RowOrder::kAsGiven);
  Tape tape;
  tape.set_recording(false);
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    correct += count_correct(model.forward(tape, batch.x, {}).value, batch.labels);
    tape.reset();
  }
  return static_cast<double>(correct) / static_cast<double>(count);
}

}  // namespace tritgrad
