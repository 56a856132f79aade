// A task that a network is trained for: the source of its batches, its loss and its metric.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/augmentation.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/data/standardizer.h"
#include "engine/tape.h"
#include "models/training/train_spec.h"

namespace tritgrad {

class Task {
 public:
  virtual ~Task() = default;

  // Returns batches to train on, in a new order in every epoch.
  virtual Loader training_batches(const std::vector<std::int32_t>& rows) const = 0;
  // Returns batches to judge a model by: every row once, as it is.
  virtual Loader test_batches(const std::vector<std::int32_t>& rows) const = 0;
  // Returns a scalar, the mean over the rows of `outputs`.
  virtual Var loss(Tape& tape, const Var& outputs, std::span<const std::int32_t> labels) const = 0;
  // Returns how many rows of the outputs are right; divided by all rows it is the accuracy.
  virtual std::int64_t count_correct(const Tensor& outputs,
                                     std::span<const std::int32_t> labels) const = 0;
};

// Tells the class of a row. The loss is the cross-entropy of smoothed labels; a row is right if its
// largest logit is that of its class.
class Classification : public Task {
 public:
  // The spec gives the batch, seed, augmentation and label smoothing. The data must outlive
  // the task and its batches. Class weights, if there are any, are those of the loss.
  Classification(const Dataset& dataset, Standardizer standardizer, const TrainSpec& spec = {},
                 std::vector<float> class_weights = {});

  Loader training_batches(const std::vector<std::int32_t>& rows) const override;
  Loader test_batches(const std::vector<std::int32_t>& rows) const override;
  Var loss(Tape& tape, const Var& outputs, std::span<const std::int32_t> labels) const override;
  std::int64_t count_correct(const Tensor& outputs,
                             std::span<const std::int32_t> labels) const override;

 private:
  const Dataset& dataset_;
  Standardizer standardizer_;
  std::int64_t batch_;
  std::uint64_t seed_;
  Augmentation augmentation_;
  double label_smoothing_;
  std::vector<float> class_weights_;
};

// Returns the weights of the classes in the loss, or none for Imbalance::kNone. Every class counts
// alike: its weight is rows / (classes that have rows * its rows), counted over the rows to train
// on, whose mean weight is 1 (King and Zeng 2001; "balanced" of scikit-learn). A class without rows
// has weight 0.
std::vector<float> class_weights(const Dataset& dataset, const std::vector<std::int32_t>& rows,
                                 Imbalance imbalance);

}  // namespace tritgrad
