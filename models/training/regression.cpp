#include "models/training/regression.h"

#include <cmath>
#include <utility>

#include "engine/check.h"
#include "ops/loss.h"

namespace tritgrad {
namespace {

void check_no_classes_treated(const Dataset& dataset, const TrainSpec& spec) {
  const auto refuse = [&](const char* option) {
    fail(option, " is for classes, but the labels of '", dataset.name,
         "' are numbers to predict; leave it out, or train on classes (--task classify)");
  };
  if (spec.imbalance != Imbalance::kNone) refuse("--imbalance");
  if (spec.label_smoothing.value_or(0.0) > 0.0) refuse("--label-smoothing");
}

// The sum of squared distances of the rows' targets from their mean, in two passes.
double squares_around_mean(std::span<const double> targets, std::span<const std::int32_t> rows) {
  double sum = 0.0, squares = 0.0;
  for (const std::int32_t row : rows) sum += targets[static_cast<std::size_t>(row)];
  const double mean = sum / static_cast<double>(rows.size());
  for (const std::int32_t row : rows) {
    const double distance = targets[static_cast<std::size_t>(row)] - mean;
    squares += distance * distance;
  }
  return squares;
}

}  // namespace

Regression::Regression(const Dataset& dataset, Standardizer standardizer,
                       const TargetScale& target_scale, const TrainSpec& spec)
    : dataset_(dataset),
      standardizer_(std::move(standardizer)),
      target_scale_(target_scale),
      batch_(spec.batch),
      seed_(spec.seed),
      augmentation_(parse_augmentation(spec.augment)) {
  check_no_classes_treated(dataset, spec);
}

Loader Regression::training_batches(std::span<const std::int32_t> rows) const {
  return {dataset_,      rows,         standardizer_, batch_, seed_, RowOrder::kShuffled,
          augmentation_, target_scale_};
}

Loader Regression::test_batches(std::span<const std::int32_t> rows) const {
  return {dataset_, rows, standardizer_, kTestBatch, 0, RowOrder::kAsGiven, {}, target_scale_};
}

Var Regression::loss(Tape& tape, const Var& outputs, const Batch& batch) const {
  // An operand of an op is not written to, but views are of mutable memory.
  auto* targets = const_cast<float*>(batch.targets.data());
  return mean_squared_error(tape, outputs, {targets, {std::ssize(batch.targets), 1}});
}

ScoreSums Regression::score_sums(const Tensor& outputs, const Batch& batch) const {
  ScoreSums sums;
  for (std::size_t row = 0; row < batch.targets.size(); ++row) {
    const double error = static_cast<double>(*outputs.row(static_cast<std::int64_t>(row))) -
                         static_cast<double>(batch.targets[row]);
    sums.score += error * error;
    sums.absolute_errors += std::abs(error);
  }
  return sums;
}

double Regression::score(double sum, std::int64_t rows) const {
  return target_scale_.deviation * std::sqrt(sum / static_cast<double>(rows));
}

Scores Regression::scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const {
  const double deviation = target_scale_.deviation;
  Scores scores{score(sums.score, std::ssize(rows)),
                deviation * sums.absolute_errors / static_cast<double>(rows.size()),
                {},
                {}};
  const double around_mean = squares_around_mean(dataset_.targets, rows);
  if (around_mean > 0.0) scores.r2 = 1.0 - deviation * deviation * sums.score / around_mean;
  return scores;
}

}  // namespace tritgrad
