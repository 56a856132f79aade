// Tells the next token of a text. The loss is the cross-entropy in nats a token; the score is the
// same in bits for each byte of the text, which compares models of different tokens: of test
// windows by their own bytes, in training by those that a token of the whole text has on average.
#pragma once

#include "models/training/task.h"

namespace tritgrad {

class LanguageModel : public Task {
 public:
  // The spec gives the batch, of windows, the length of an epoch and the seed. The data must
  // outlive the task and its batches. Throws Error for options of the spec that treat classes or
  // images.
  explicit LanguageModel(const Dataset& dataset, const TrainSpec& spec = {});

  Loader training_batches(std::span<const std::int32_t> rows) const override;
  Loader test_batches(std::span<const std::int32_t> rows) const override;
  Var loss(Tape& tape, const Var& outputs, const Batch& batch) const override;
  ScoreSums score_sums(const Tensor& outputs, const Batch& batch) const override;
  double training_score(const Tensor& outputs, const Batch& batch, double loss) const override;
  double score(double sum, std::int64_t rows) const override;
  Scores scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const override;

 private:
  Loader batches(std::span<const std::int32_t> rows, std::int64_t batch, RowOrder order) const;

  const Dataset& dataset_;
  std::int64_t batch_;
  std::int64_t epoch_tokens_;
  std::uint64_t seed_;
};

}  // namespace tritgrad
