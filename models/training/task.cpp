#include "models/training/task.h"

#include <utility>

#include "ops/loss.h"

namespace tritgrad {

Classification::Classification(const Dataset& dataset, Standardizer standardizer,
                               const TrainSpec& spec)
    : dataset_(dataset),
      standardizer_(std::move(standardizer)),
      batch_(spec.batch),
      seed_(spec.seed),
      augmentation_(parse_augmentation(spec.augment)),
      label_smoothing_(spec.label_smoothing.value_or(0.0)) {}

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
  return softmax_cross_entropy(tape, outputs, labels, label_smoothing_);
}

std::int64_t Classification::count_correct(const Tensor& outputs,
                                           std::span<const std::int32_t> labels) const {
  return tritgrad::count_correct(outputs, labels);
}

}  // namespace tritgrad
