#include "tools/bench/training_steps.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/clock.h"
#include "models/networks/mlp.h"

namespace tritgrad {
namespace {

// The first step grows the arenas, the second touches their joined memory for the first time.
constexpr int kWarmSteps = 2;
constexpr int kTimedSteps = 3;

struct SyntheticBatch {
  SyntheticBatch(std::int64_t rows, std::int64_t inputs, std::int64_t outputs)
      : numbers(static_cast<std::size_t>(rows * inputs) * sizeof(float), Category::kData),
        x{numbers.as<float>(), {rows, inputs}} {
    const RandomKey key{1, random_stream("bench.batch"), 0};
    for (std::int64_t i = 0; i < rows * inputs; ++i) {
      x.data[i] = random_normal(key, static_cast<std::uint64_t>(i));
    }
    for (std::int64_t r = 0; r < rows; ++r)
      labels.push_back(static_cast<std::int32_t>(r % outputs));
  }

  Buffer numbers;
  Tensor x;
  std::vector<std::int32_t> labels;
};

}  // namespace

std::string StepSpec::name() const {
  return recipe + " " + model + " batch " + std::to_string(batch);
}

StepCase::StepCase(const StepSpec& spec) : spec_(spec), recipe_(load_recipe(spec.recipe)) {
  const MlpSpec shape = fit_mlp(parse_mlp(spec.model), 0, 0);
  inputs_ = shape.inputs;
  outputs_ = shape.outputs;
  bool first = true;
  for (const ParameterSpec& parameter : plan_model(spec.model, 0, 0, recipe_)) {
    if (parameter.role != Role::kWeight) continue;
    // There are products forward, for the gradient of the inputs (which the data does not want),
    // and for that of the weights.
    const double products = first ? 2.0 : 3.0;
    operations_ += 2.0 * products * static_cast<double>(spec.batch) *
                   static_cast<double>(parameter.shape.size());
    if (first && recipe_.compute == Compute::kInt8 && parameter.format.traits().holds_trits) {
      ceiling_ = Ceiling::kInt8Trits;
    }
    first = false;
  }
}

void StepCase::measure() {
  const SyntheticBatch batch(spec_.batch, inputs_, outputs_);
  const std::int64_t before = ledger::live_total();
  ledger::reset_peak();
  const auto model = make_model(spec_.model, 0, 0, recipe_, 1);
  Optimizer optimizer = make_optimizer(*model, recipe_, 1000000, 1);
  Tape tape;
  const Dataset no_data;
  const TrainSpec spec;
  const Classification task(no_data, Standardizer({0.0f}, {1.0f}));
  const Batch whole{batch.x, batch.labels, 0, spec_.batch};
  for (int step = 0; step < kWarmSteps + kTimedSteps; ++step) {
    MeasuredStep measured;
    const Job job{spec, recipe_, task, *model, optimizer, tape, nullptr, &measured.phases};
    bool finite = false;
    try {
      finite = timed(&measured.whole, [&] { return train_step(job, whole); }).finite;
    } catch (const Diverged&) {
    }
    check(finite, "bench: recipe '", recipe_.name,
          "' makes a loss that is not finite on random numbers; lower its learning rate");
    if (step >= kWarmSteps) steps_.push_back(measured);
  }
  peak_live_bytes_ = std::max(peak_live_bytes_, ledger::peak_total() - before);
}

StepResult StepCase::result() const {
  std::vector<MeasuredStep> steps = steps_;
  std::sort(steps.begin(), steps.end(),
            [](const MeasuredStep& a, const MeasuredStep& b) { return a.whole < b.whole; });
  return {spec_,       recipe_.compute, steps.at((steps.size() - 1) / 2),
          operations_, ceiling_,        peak_live_bytes_};
}

}  // namespace tritgrad
