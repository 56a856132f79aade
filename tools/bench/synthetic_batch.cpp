#include "tools/bench/synthetic_batch.h"

#include "engine/data/vocabulary.h"
#include "engine/random.h"
#include "models/networks/conv_spec.h"
#include "models/networks/llama.h"
#include "models/networks/mlp.h"
#include "models/training/language_model.h"

namespace tritgrad {

SyntheticTask synthetic_task(const std::string& model) {
  if (const std::int64_t context = context_of(model); context > 0) {
    return {true, context, Vocabulary::of_bytes().size()};
  }
  if (model.starts_with("conv:")) {
    const ConvNetSpec spec = fit_conv(parse_conv(model), 0, 0);
    return {false, spec.image.size(), spec.outputs, conv_uses(spec)};
  }
  const MlpSpec shape = fit_mlp(parse_mlp(model), 0, 0);
  return {false, shape.inputs, shape.outputs};
}

std::unique_ptr<Task> loss_of(const SyntheticTask& task, const Dataset& dataset) {
  if (task.is_text) return std::make_unique<LanguageModel>(dataset);
  return std::make_unique<Classification>(dataset, Standardizer({0.0f}, {1.0f}));
}

SyntheticBatch::SyntheticBatch(const SyntheticTask& task, std::int64_t rows)
    : numbers_(static_cast<std::size_t>(rows * task.features) * sizeof(float), Category::kData),
      x_{numbers_.as<float>(), {rows, task.features}},
      labels_per_row_(task.labels_per_row()) {
  const auto tokens = static_cast<std::uint32_t>(task.outputs);
  const RandomKey key{1, random_stream("bench.batch"), 0};
  for (std::int64_t i = 0; i < x_.size(); ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    x_.data[i] = task.is_text ? static_cast<float>(random_below(key, index, tokens))
                              : random_normal(key, index);
  }
  for (std::int64_t i = 0; i < rows * labels_per_row_; ++i) {
    labels_.push_back(static_cast<std::int32_t>(i % task.outputs));
  }
}

Batch SyntheticBatch::whole() const { return {x_, labels_, {}, 0, x_.rows(), labels_per_row_}; }

}  // namespace tritgrad
