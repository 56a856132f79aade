#include "tools/reproduce/state_and_speed.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "engine/ledger.h"
#include "engine/parallel.h"
#include "optim/optimizer.h"
#include "tools/reproduce/curve_numbers.h"
#include "tools/reproduce/variant.h"

namespace tritgrad {
namespace {

using Clock = std::chrono::steady_clock;

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

  void step(const Tensor& gradient, bool timed) {
    parameter_->grad = gradient;
    const Clock::time_point start = Clock::now();
    optimizer_->step(*parameter_);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    optimizer_->advance();
    parameter_->grad = {};
    if (timed) seconds_.push_back(seconds);
  }

  CostPoint result() const {
    CostPoint point = point_;
    point.seconds_per_step = median(seconds_);
    point.repetitions = static_cast<int>(seconds_.size());
    return point;
  }

 private:
  Recipe recipe_;
  ParameterStore store_;
  Parameter* parameter_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
  CostPoint point_;
  std::vector<double> seconds_;
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

std::vector<CostPoint> measure_costs(const std::vector<std::int64_t>& sizes, int repetitions) {
  constexpr std::uint32_t kWarmUp = 10;  // rows of the window
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
    const auto steps = kWarmUp + static_cast<std::uint32_t>(repetitions);
    for (std::uint32_t step = 0; step < steps; ++step) {
      for (Contender* contender : {&adam, &micro}) {
        // Filled anew for each: a rule may use the gradient's memory as it likes.
        rotate_copy(source, step, gradient);
        contender->step(gradient, step >= kWarmUp);
      }
    }
    points.push_back(adam.result());
    points.push_back(micro.result());
  }
  return points;
}

}  // namespace tritgrad
