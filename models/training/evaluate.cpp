#include "models/training/evaluate.h"

#include <numeric>

#include "engine/check.h"
#include "engine/data/loader.h"
#include "ops/loss.h"

namespace tritgrad {
namespace {

std::int64_t count_correct_rows(Model& model, Tape& tape, const Dataset& dataset,
                                const std::vector<std::int32_t>& rows,
                                const Standardizer& standardizer) {
  if (rows.empty()) return 0;
  // No more than the usual batch of training, whose memory is used again.
  constexpr std::int64_t kBatch = 128;
  Loader loader(dataset, rows, standardizer, kBatch, 0, RowOrder::kAsGiven);
  tape.set_recording(false);
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    correct += count_correct(model.forward(tape, batch.x, {}).value, batch.labels);
    tape.reset();
  }
  tape.set_recording(true);
  return correct;
}

}  // namespace

std::optional<double> evaluate(Model& model, Tape& tape, const Dataset& dataset,
                               const std::vector<std::int32_t>& rows,
                               const Standardizer& standardizer, Communicator* ranks) {
  if (rows.empty()) return std::nullopt;
  check(tape.node_count() == 0, "evaluate: the tape holds ", tape.node_count(),
        " steps; call reset() first");
  const auto count = static_cast<double>(rows.size());
  if (ranks == nullptr) {
    return static_cast<double>(count_correct_rows(model, tape, dataset, rows, standardizer)) /
           count;
  }
  const auto place = [&](int rank) {
    return rows.begin() + rank * std::ssize(rows) / ranks->size();
  };
  const std::vector<std::int32_t> own(place(ranks->rank()), place(ranks->rank() + 1));
  const std::vector<std::int64_t> correct =
      gather_values(*ranks, count_correct_rows(model, tape, dataset, own, standardizer));
  return static_cast<double>(std::accumulate(correct.begin(), correct.end(), std::int64_t{0})) /
         count;
}

}  // namespace tritgrad
