#include "tools/study/train_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/data/loader.h"
#include "engine/data/split.h"
#include "engine/formats/half_precision.h"
#include "engine/random.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "ops/loss.h"

namespace tritgrad {
namespace {

// Steps at the end of training that are looked at one by one.
constexpr std::int64_t kTracedSteps = 20000;

Standardizer standardizer_for(const Dataset& dataset, const Split& split, bool standardized) {
  if (standardized) return Standardizer::fit(dataset, split.train);
  return Standardizer(std::vector<float>{0.0f}, std::vector<float>{1.0f});
}

// Fisher-Yates, once: the order of rows in every epoch of a variant with fixed batches.
std::vector<std::int32_t> shuffled(std::vector<std::int32_t> rows, std::uint64_t seed) {
  const RandomKey key{seed, random_stream("fixed batches"), 0};
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
  return rows;
}

// All weights of the last three steps, to see how far and where a step went.
class UpdateMeter {
 public:
  explicit UpdateMeter(const Model& model) : model_(model) { read(before_); }

  // Called after a step.
  void look() {
    read(now_);
    double length = 0.0, turn = 0.0;
    last_update_.resize(now_.size());
    for (std::size_t i = 0; i < now_.size(); ++i) {
      const double update = static_cast<double>(now_[i]) - static_cast<double>(before_[i]);
      length += update * update;
      turn += (update - last_update_[i]) * (update - last_update_[i]);
      last_update_[i] = update;
    }
    before_.swap(now_);
    length_ = std::sqrt(length);
    turn_ = std::sqrt(turn);
  }
  double length() const { return length_; }
  double turn() const { return turn_; }

 private:
  void read(std::vector<float>& out) const {
    out.clear();
    for (const Parameter& parameter : model_.parameters()) {
      const float* values = parameter.storage().fp32_data();
      out.insert(out.end(), values, values + parameter.shape().size());
    }
  }

  const Model& model_;
  std::vector<float> before_, now_;
  std::vector<double> last_update_;
  double length_ = 0.0, turn_ = 0.0;
};

double train_step(Model& model, Optimizer& optimizer, Tape& tape, const Batch& batch) {
  const Var logits = model.forward(tape, batch.x, {.training = true});
  const Var loss = softmax_cross_entropy(tape, logits, batch.labels);
  const double value = static_cast<double>(loss.value.data[0]);
  if (std::isfinite(value)) {
    tape.backward(loss, [&](Parameter& parameter) { optimizer.step(parameter); });
  }
  optimizer.advance();
  tape.reset();
  return value;
}

}  // namespace

std::int64_t study_steps_per_epoch(const Dataset& dataset) {
  const Split split = fixed_split(dataset);
  return Loader(dataset, split.train, standardizer_for(dataset, split, false), kStudyBatch, 1,
                RowOrder::kShuffled)
      .batches_per_epoch();
}

ConstantBuckets::ConstantBuckets(Optimizer& optimizer) {
  for (const NamedArray& plane : optimizer.state()) {
    if (!plane.name.ends_with("/microadam/bounds")) continue;
    bounds_.emplace_back(reinterpret_cast<const std::uint16_t*>(plane.bytes.data()),
                         plane.bytes.size() / sizeof(std::uint16_t));
  }
  look();
  count_ = {count_.written, count_.zero, 0, 0, 0};
}

void ConstantBuckets::look() {
  for (const auto bounds : bounds_) {
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const float low = float_of_bf16(bounds[i]), high = float_of_bf16(bounds[i + 1]);
      ++count_.written;
      count_.constant += low == high ? 1 : 0;
      count_.zero += low == high && low == 0.0f ? 1 : 0;
    }
  }
}

Curve train_curve(const Dataset& dataset, const Variant& variant, int epochs, std::uint64_t seed,
                  const std::function<void(double loss)>& after_epoch) {
  const Recipe recipe = variant_recipe(variant);
  const Split split = fixed_split(dataset);
  const Standardizer standardizer = standardizer_for(dataset, split, variant.standardized);
  Loader loader(dataset, variant.reshuffled ? split.train : shuffled(split.train, seed),
                standardizer, kStudyBatch, seed,
                variant.reshuffled ? RowOrder::kShuffled : RowOrder::kAsGiven);
  const std::int64_t steps = epochs * loader.batches_per_epoch();
  const std::int64_t untraced = steps - std::min(steps / 2, kTracedSteps);
  const auto model = make_model(study_model(), dataset.features, dataset.classes(), recipe, seed);
  Optimizer optimizer = make_optimizer(*model, recipe, steps, seed);
  Tape tape;
  UpdateMeter meter(*model);
  ConstantBuckets buckets(optimizer);
  StepTrace trace{untraced + 1, loader.batches_per_epoch(), {}, {}, {}, {}};
  Curve curve;

  for (int epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0.0;
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      const Batch batch = loader.next();
      const double loss = train_step(*model, optimizer, tape, batch);
      sum += loss * static_cast<double>(batch.labels.size());
      buckets.look();
      meter.look();
      lengths.push_back(meter.length());
      if (optimizer.steps_done() <= untraced) continue;
      trace.loss.push_back(loss);
      trace.length.push_back(meter.length());
      trace.turn.push_back(meter.turn());
    }
    const double mean = sum / static_cast<double>(loader.rows_per_epoch());
    curve.epoch_loss.push_back(std::isfinite(mean) ? mean
                                                   : std::numeric_limits<double>::quiet_NaN());
    trace.epoch_length.push_back(phase_means(lengths, 0, 1)[0]);
    if (after_epoch) after_epoch(mean);
  }
  curve.numbers = measure_curve(curve.epoch_loss, trace);
  curve.numbers.buckets = buckets.count();
  curve.numbers.test_accuracy =
      evaluate(*model, tape, Classification(dataset, standardizer), split.test).value_or(0.0);
  return curve;
}

}  // namespace tritgrad
