#include "models/training/language_model.h"

#include <algorithm>
#include <numbers>

#include "engine/check.h"
#include "engine/data/token_text.h"
#include "ops/loss.h"

namespace tritgrad {
namespace {

// Most tokens, and most logits, that a model is judged by at once.
constexpr std::int64_t kTestTokens = 1024, kTestLogits = 1 << 24;

void check_no_rows_treated(const Dataset& dataset, const TrainSpec& spec) {
  const auto refuse = [&](const char* option, const char* what) {
    fail(option, " is for ", what, ", but '", dataset.name, "' is a text; leave it out");
  };
  if (spec.imbalance != Imbalance::kNone) refuse("--imbalance", "classes");
  if (spec.label_smoothing.value_or(0.0) > 0.0) refuse("--label-smoothing", "classes");
  if (parse_augmentation(spec.augment).changes_anything()) refuse("--augment", "images");
  if (spec.pixel_scale() != PixelScale::kLinear) refuse("--pixels", "images");
  if (spec.task != TaskKind::kAuto) refuse("--task", "rows with labels");
}

}  // namespace

LanguageModel::LanguageModel(const Dataset& dataset, const TrainSpec& spec)
    : dataset_(dataset), batch_(spec.batch), epoch_tokens_(spec.epoch_tokens), seed_(spec.seed) {
  check_no_rows_treated(dataset, spec);
}

Loader LanguageModel::batches(std::span<const std::int32_t> rows, std::int64_t batch,
                              RowOrder order) const {
  return {dataset_, rows, Standardizer::fit(dataset_, rows), batch, seed_, order};
}

Loader LanguageModel::training_batches(std::span<const std::int32_t> rows) const {
  Loader loader = batches(rows, batch_, RowOrder::kShuffled);
  const std::int64_t window = dataset_.features;
  if (epoch_tokens_ > 0) loader.set_epoch((epoch_tokens_ + window - 1) / window);
  return loader;
}

Loader LanguageModel::test_batches(std::span<const std::int32_t> rows) const {
  const std::int64_t tokens =
      std::min(kTestTokens, kTestLogits / static_cast<std::int64_t>(dataset_.outputs()));
  return batches(rows, std::max<std::int64_t>(1, tokens / dataset_.features), RowOrder::kAsGiven);
}

Var LanguageModel::loss(Tape& tape, const Var& outputs, const Batch& batch) const {
  return softmax_cross_entropy(tape, outputs, batch.labels);
}

ScoreSums LanguageModel::score_sums(const Tensor& outputs, const Batch& batch) const {
  return {sum_cross_entropy(outputs, batch.labels), 0.0};
}

double LanguageModel::training_score(const Tensor&, const Batch& batch, double loss) const {
  return loss * static_cast<double>(batch.labels.size());
}

double LanguageModel::score(double sum, std::int64_t rows) const {
  const TokenText& text = *dataset_.text;
  const double nats = sum / static_cast<double>(rows * dataset_.features);
  return nats / std::numbers::ln2 * static_cast<double>(text.size()) /
         static_cast<double>(text.byte_count());
}

Scores LanguageModel::scores(const ScoreSums& sums, std::span<const std::int32_t> rows) const {
  const std::int64_t window = dataset_.features;
  std::int64_t bytes = 0;  // of the tokens that are told, the labels
  for (const std::int32_t row : rows) {
    bytes += dataset_.text->byte_count(row * window + 1, window);
  }
  return {sums.score / std::numbers::ln2 / static_cast<double>(bytes),
          {},
          {},
          sums.score / static_cast<double>(std::ssize(rows) * window)};
}

}  // namespace tritgrad
