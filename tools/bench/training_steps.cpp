#include "tools/bench/training_steps.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "models/mlp.h"
#include "ops/loss.h"
#include "tools/bench/timing.h"

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

// One step as tools/training_step.cpp makes it.
StepTimes timed_step(Model& model, Optimizer& optimizer, Tape& tape, const Recipe& recipe,
                     const SyntheticBatch& batch) {
  StepTimes times;
  const auto timed_update = [&](const auto& update) {
    const Clock::time_point start = Clock::now();
    update();
    times.update += seconds_since(start);
  };
  const bool released = recipe.gradients == GradientPolicy::kReleased;
  const RandomKey key{1, 0, static_cast<std::uint32_t>(optimizer.steps_done() + 1)};
  const Clock::time_point start = Clock::now();
  const Var logits = model.forward(tape, batch.x, {.training = true, .key = key});
  const Var loss = softmax_cross_entropy(tape, logits, batch.labels);
  times.forward = seconds_since(start);
  tape.backward(loss, [&](Parameter& parameter) {
    if (released) timed_update([&] { optimizer.step(parameter); });
  });
  times.backward = seconds_since(start) - times.forward - times.update;
  const double value = static_cast<double>(loss.value.data[0]);
  tape.reset();
  timed_update([&] {
    if (!released) {
      if (recipe.clip_grad_norm > 0.0) optimizer.clip_grad_norm(recipe.clip_grad_norm);
      optimizer.step();
    }
    optimizer.advance();
  });
  times.whole = seconds_since(start);
  check(std::isfinite(value), "bench: recipe '", recipe.name,
        "' makes a loss that is not finite on random numbers; lower its learning rate");
  return times;
}

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
    // Forward, the inputs' gradient (which nobody wants of the data), and the weights'.
    const double products = first ? 2.0 : 3.0;
    operations_ += 2.0 * products * static_cast<double>(spec.batch) *
                   static_cast<double>(parameter.shape.size());
    if (first && recipe_.compute == Compute::kInt8 && parameter.format.wants_scale()) {
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
  for (int step = 0; step < kWarmSteps + kTimedSteps; ++step) {
    const StepTimes times = timed_step(*model, optimizer, tape, recipe_, batch);
    if (step >= kWarmSteps) steps_.push_back(times);
  }
  peak_live_bytes_ = std::max(peak_live_bytes_, ledger::peak_total() - before);
}

StepResult StepCase::result() const {
  std::vector<StepTimes> steps = steps_;
  std::sort(steps.begin(), steps.end(),
            [](const StepTimes& a, const StepTimes& b) { return a.whole < b.whole; });
  return {spec_,       recipe_.compute, steps.at((steps.size() - 1) / 2),
          operations_, ceiling_,        peak_live_bytes_};
}

}  // namespace tritgrad
