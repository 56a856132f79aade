// Predicts a number for a row. The loss is the mean squared error of the standardised target; the
// score is the root of the mean squared error in the target's own units.
#pragma once

#include "engine/data/targets.h"
#include "models/training/task.h"

namespace tritgrad {

class Regression : public Task {
 public:
  // The spec gives the batch, seed and augmentation. The data must outlive the task and its
  // batches. Throws Error for options of the spec that treat classes.
  Regression(const Dataset& dataset, Standardizer standardizer, const TargetScale& target_scale,
             const TrainSpec& spec = {});

  Loader training_batches(std::span<const std::int32_t> rows) const override;
  Loader test_batches(std::span<const std::int32_t> rows) const override;
  Var loss(Tape& tape, const Var& outputs, const Batch& batch) const override;
  ScoreSums score_sums(const Tensor& outputs, const Batch& batch) const override;
  double score(double sum, std::int64_t rows) const override;
  Scores scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const override;

 private:
  const Dataset& dataset_;
  Standardizer standardizer_;
  TargetScale target_scale_;
  std::int64_t batch_;
  std::uint64_t seed_;
  Augmentation augmentation_;
};

}  // namespace tritgrad
