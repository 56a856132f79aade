#include "tools/study/state_and_speed.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/clock.h"
#include "engine/memory/ledger.h"
#include "engine/memory/parallel.h"
#include "optim/optimizer.h"
#include "tools/cli/interrupt.h"
#include "tools/study/curve_numbers.h"
#include "tools/study/study_figures.h"

namespace tritgrad {
namespace {

// As it would be used: 1 % of the gradient, 4-bit error feedback in buckets of 64.
Recipe recipe_of(Form form) {
  return variant_recipe({.data = "cost", .form = form, .density = 0.01, .feedback_bits = 4});
}

// A matrix, its optimizer and the times of its steps.
class Contender {
 public:
  Contender(const char* rule, Form form, const Shape& shape) : recipe_(recipe_of(form)) {
    const ParameterSpec spec{"matrix",
                             Role::kWeight,
                             shape,
                             recipe_.group(Role::kWeight).format,
                             {Initial::Kind::kNormal, 0.02f}};
    parameter_ = &store_.add(spec, 1);
    const std::int64_t before = ledger::live(Category::kMoments);
    const GroupSpec group = recipe_.group(Role::kWeight).update;
    optimizer_ = std::make_unique<Optimizer>(
        store_, [&](const ParameterSpec&) { return group; }, 1000, 1);
    point_.parameters = shape.size();
    point_.rule = rule;
    point_.ledger_bytes = ledger::live(Category::kMoments) - before;
    point_.state_bytes = Optimizer::state_bytes(spec, group);
  }

  // Seconds that it took.
  double step(const Tensor& gradient) {
    parameter_->grad = gradient;
    const Clock::time_point start = Clock::now();
    optimizer_->step(*parameter_);
    const double seconds = seconds_since(start);
    optimizer_->advance();
    parameter_->grad = {};
    return seconds;
  }

  void add_sample(double seconds_per_step) { samples_.push_back(seconds_per_step); }

  CostPoint result() const {
    CostPoint point = point_;
    std::vector<double> sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t quarter = sorted.size() / 4;
    point.seconds_per_step = median(sorted);
    point.lower_quartile = sorted[quarter];
    point.upper_quartile = sorted[sorted.size() - 1 - quarter];
    point.samples = static_cast<int>(sorted.size());
    return point;
  }

 private:
  Recipe recipe_;
  ParameterStore store_;
  Parameter* parameter_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
  CostPoint point_;
  std::vector<double> samples_;
};

// Uniform numbers on [-1, 1).
void fill(const Tensor& tensor) {
  const RandomKey key{1, random_stream("gradient"), 0};
  parallel_ranges(tensor.size(), 32768, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      tensor.data[i] = 2.0f * random_uniform(key, static_cast<std::uint64_t>(i)) - 1.0f;
    }
  });
}

// Another gradient in every step: the same numbers, but elsewhere.
void rotate_copy(const Tensor& from, std::uint32_t step, const Tensor& to) {
  const std::int64_t shift = (std::int64_t{step} * 7919) % from.size();
  std::copy(from.data + shift, from.data + from.size(), to.data);
  std::copy(from.data, from.data + shift, to.data + (from.size() - shift));
}

}  // namespace

std::vector<CostPoint> measure_costs(const std::vector<std::int64_t>& sizes, int samples) {
  constexpr int kWarmUp = 10;  // rows of the window
  // A step of few parameters is shorter than what disturbs it.
  constexpr std::int64_t kParametersPerSample = std::int64_t{1} << 20;
  const InterruptWatch watch;
  std::vector<CostPoint> points;
  for (const std::int64_t size : sizes) {
    auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(size)));
    while (size % rows != 0) --rows;
    const Shape shape{rows, size / rows};
    Contender adam("Adam", Form::kAdam, shape);
    Contender micro("MicroAdam", Form::kCorrected, shape);
    const auto bytes = static_cast<std::size_t>(shape.size()) * sizeof(float);
    Buffer numbers(bytes, Category::kWorkspace), memory(bytes, Category::kGradients);
    const Tensor source{numbers.as<float>(), shape}, gradient{memory.as<float>(), shape};
    fill(source);
    std::uint32_t gradients = 0;
    const auto run = [&](Contender& contender, std::int64_t steps) {
      double seconds = 0.0;
      for (std::int64_t i = 0; i < steps; ++i) {
        watch.end_if_interrupted(kNothingCameOfIt);
        // Filled anew for each: a rule may use the gradient's memory as it likes.
        rotate_copy(source, gradients + static_cast<std::uint32_t>(i), gradient);
        seconds += contender.step(gradient);
      }
      return seconds / static_cast<double>(steps);
    };
    for (Contender* contender : {&adam, &micro}) run(*contender, kWarmUp);
    gradients += kWarmUp;
    const std::int64_t steps = std::max<std::int64_t>(1, kParametersPerSample / size);
    for (int sample = 0; sample < samples; ++sample) {
      for (Contender* contender : {&adam, &micro}) contender->add_sample(run(*contender, steps));
      gradients += static_cast<std::uint32_t>(steps);
    }
    points.push_back(adam.result());
    points.push_back(micro.result());
  }
  return points;
}

}  // namespace tritgrad
