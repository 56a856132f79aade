#include "models/training/task.h"

#include <algorithm>
#include <utility>

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

Loader Classification::training_batches(const std::vector<std::int32_t>& rows) const {
  return {dataset_, rows, standardizer_, batch_, seed_, RowOrder::kShuffled, augmentation_};
}

Loader Classification::test_batches(const std::vector<std::int32_t>& rows) const {
  // No more than the usual batch of training, whose memory is used again.
  constexpr std::int64_t kBatch = 128;
  return {dataset_, rows, standardizer_, kBatch, 0, RowOrder::kAsGiven};
}

Var Classification::loss(Tape& tape, const Var& outputs,
                         std::span<const std::int32_t> labels) const {
  return softmax_cross_entropy(tape, outputs, labels, label_smoothing_, class_weights_);
}

std::int64_t Classification::count_correct(const Tensor& outputs,
                                           std::span<const std::int32_t> labels) const {
  return tritgrad::count_correct(outputs, labels);
}

std::vector<float> class_weights(const Dataset& dataset, const std::vector<std::int32_t>& rows,
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

}  // namespace tritgrad
