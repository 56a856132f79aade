// A task that a network is trained for: the source of its batches, its loss and its score.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/data/augmentation.h"
#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/data/standardizer.h"
#include "engine/data/targets.h"
#include "engine/tape.h"
#include "models/training/train_spec.h"

namespace tritgrad {

// Sums over rows that tell how good a model is; parts of batches and ranks add theirs up.
struct ScoreSums {
  // Rows that are right, squared errors of standardised targets, or nats of tokens.
  double score = 0.0;
  double absolute_errors = 0.0;  // of standardised targets

  ScoreSums& operator+=(const ScoreSums& other) {
    score += other.score;
    absolute_errors += other.absolute_errors;
    return *this;
  }
};

// How good a model is on some rows.
struct Scores {
  double score;  // of the metric of the task
  // Of regression: the mean absolute error in the units of the label, and the share of the label's
  // variance over these rows that is explained, absent where they all have the same label.
  std::optional<double> mae, r2;
  // Of a language model: nats a token, the exponential of which is its perplexity.
  std::optional<double> nats;
};

// Rows that a model is judged by at once: no more than the usual batch of training, whose memory is
// used again.
inline constexpr std::int64_t kTestBatch = 128;

class Task {
 public:
  virtual ~Task() = default;

  // Returns batches to train on, in a new order in every epoch.
  virtual Loader training_batches(std::span<const std::int32_t> rows) const = 0;
  // Returns batches to judge a model by: every row once, as it is.
  virtual Loader test_batches(std::span<const std::int32_t> rows) const = 0;
  // Returns a scalar, the mean over the rows of `outputs`, which are those of the batch.
  virtual Var loss(Tape& tape, const Var& outputs, const Batch& batch) const = 0;
  // Returns sums over the rows of the batch, added in their order.
  virtual ScoreSums score_sums(const Tensor& outputs, const Batch& batch) const = 0;
  // Returns ScoreSums::score of a batch whose loss() has this value.
  virtual double training_score(const Tensor& outputs, const Batch& batch, double /*loss*/) const {
    return score_sums(outputs, batch).score;
  }
  // Returns the score that ScoreSums::score makes of so many rows; NaN for none.
  virtual double score(double sum, std::int64_t rows) const = 0;
  // Returns all that the sums over these rows, one or more, tell.
  virtual Scores scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const = 0;
};

// Tells the class of a row. The loss is the cross-entropy of smoothed labels; the score is the
// share of rows that are right, whose largest logit is that of their class.
class Classification : public Task {
 public:
  // The spec gives the batch, seed, augmentation and label smoothing. The data must outlive
  // the task and its batches. Class weights, if there are any, are those of the loss.
  Classification(const Dataset& dataset, Standardizer standardizer, const TrainSpec& spec = {},
                 std::vector<float> class_weights = {});

  Loader training_batches(std::span<const std::int32_t> rows) const override;
  Loader test_batches(std::span<const std::int32_t> rows) const override;
  Var loss(Tape& tape, const Var& outputs, const Batch& batch) const override;
  ScoreSums score_sums(const Tensor& outputs, const Batch& batch) const override;
  double score(double sum, std::int64_t rows) const override;
  Scores scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const override;

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
std::vector<float> class_weights(const Dataset& dataset, std::span<const std::int32_t> rows,
                                 Imbalance imbalance);

// Returns the task of training on these rows of the data: LanguageModel of a text, Regression where
// they have targets, else Classification with the class weights that the spec asks for.
std::unique_ptr<Task> make_task(const Dataset& dataset, std::span<const std::int32_t> rows,
                                const Standardizer& standardizer, const TargetScale& target_scale,
                                const TrainSpec& spec);
// Returns the task of judging a model on the data.
std::unique_ptr<Task> make_task(const Dataset& dataset, const Standardizer& standardizer,
                                const TargetScale& target_scale);

}  // namespace tritgrad
