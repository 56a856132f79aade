#include "models/training/task.h"

#include <algorithm>
#include <utility>

#include "engine/check.h"
#include "models/training/language_model.h"
#include "models/training/regression.h"
#include "ops/loss.h"

namespace tritgrad {

Classification::Classification(const Dataset& dataset, Standardizer standardizer,
                               const TrainSpec& spec, std::vector<float> class_weights)
    : dataset_(dataset),
      standardizer_(std::move(standardizer)),
      batch_(spec.batch),
      seed_(spec.seed),
      augmentation_(parse_augmentation(spec.augment)),
      label_smoothing_(spec.label_smoothing.value_or(0.0)),
      class_weights_(std::move(class_weights)) {}

Loader Classification::training_batches(std::span<const std::int32_t> rows) const {
  return {dataset_, rows, standardizer_, batch_, seed_, RowOrder::kShuffled, augmentation_};
}

Loader Classification::test_batches(std::span<const std::int32_t> rows) const {
  return {dataset_, rows, standardizer_, kTestBatch, 0, RowOrder::kAsGiven};
}

Var Classification::loss(Tape& tape, const Var& outputs, const Batch& batch) const {
  return softmax_cross_entropy(tape, outputs, batch.labels, label_smoothing_, class_weights_);
}

// Counts are whole numbers, of which doubles hold more than there can be rows.
ScoreSums Classification::score_sums(const Tensor& outputs, const Batch& batch) const {
  return {static_cast<double>(count_correct(outputs, batch.labels)), 0.0};
}

double Classification::score(double sum, std::int64_t rows) const {
  return sum / static_cast<double>(rows);
}

Scores Classification::scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const {
  return {score(sums.score, std::ssize(rows)), {}, {}, {}};
}

std::vector<float> class_weights(const Dataset& dataset, std::span<const std::int32_t> rows,
                                 Imbalance imbalance) {
  if (imbalance == Imbalance::kNone) return {};
  std::vector<std::int64_t> counts(dataset.class_names.size(), 0);
  for (const std::int32_t row : rows) {
    ++counts[static_cast<std::size_t>(dataset.labels[static_cast<std::size_t>(row)])];
  }
  const auto present = std::ssize(counts) - std::count(counts.begin(), counts.end(), 0);
  std::vector<float> weights;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(rows.size());
    weights.push_back(
        count == 0 ? 0.0f : static_cast<float>(1.0 / (static_cast<double>(present) * share)));
  }
  return weights;
}

std::unique_ptr<Task> make_task(const Dataset& dataset, std::span<const std::int32_t> rows,
                                const Standardizer& standardizer, const TargetScale& target_scale,
                                const TrainSpec& spec) {
  if (dataset.is_text()) return std::make_unique<LanguageModel>(dataset, spec);
  check(spec.epoch_tokens == 0, "--epoch-tokens is for texts, and '", dataset.name,
        "' is none; leave it out");
  if (dataset.is_regression()) {
    return std::make_unique<Regression>(dataset, standardizer, target_scale, spec);
  }
  return std::make_unique<Classification>(dataset, standardizer, spec,
                                          class_weights(dataset, rows, spec.imbalance));
}

std::unique_ptr<Task> make_task(const Dataset& dataset, const Standardizer& standardizer,
                                const TargetScale& target_scale) {
  return make_task(dataset, {}, standardizer, target_scale, {});
}

}  // namespace tritgrad
