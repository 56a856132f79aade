#include "tools/bench/training_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "engine/clock.h"
#include "models/networks/model.h"
#include "models/training/training_step.h"
#include "tools/bench/synthetic_batch.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

// The first step grows the arenas, the second touches their joined memory for the first time.
constexpr int kWarmSteps = 2;
constexpr int kTimedSteps = 3;

// Calls `body`; the options that errors advise in it become what bench has instead of them.
template <typename Body>
auto in_terms_of_bench(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::string sentence = error.what();
    for (const auto& [theirs, ours] :
         {std::pair<std::string, std::string>("--compute fp32", "a recipe that computes in fp32"),
          {", or name the data", ""},
          {"; name the data", "; give all of it, such as conv:32x32x3-32-M-64-M-10"}}) {
      const std::size_t at = sentence.find(theirs);
      if (at != std::string::npos) sentence.replace(at, theirs.size(), ours);
    }
    fail(sentence);
  }
}

// The seconds of one step. The whole includes what is in no phase: sums and the tape's reset.
struct StepSeconds {
  double whole = 0.0;
  StepTimes phases;
};

class StepMeasurement : public Measurement {
 public:
  StepMeasurement(const std::string& recipe, const std::string& model, std::int64_t batch)
      : recipe_name_(recipe),
        model_(model),
        batch_(batch),
        recipe_(load_recipe(recipe)),
        network_(synthetic_task(model)) {
    const double rows = static_cast<double>(batch * network_.labels_per_row());
    std::size_t matrix = 0;
    for (const ParameterSpec& parameter :
         plan_model(model, network_.features, network_.outputs, recipe_)) {
      if (parameter.role != Role::kWeight) continue;
      // There are products forward, for the gradient of the inputs (which the data does not want;
      // of a text, an embedding does), and for that of the weights.
      const double products = matrix == 0 && !network_.is_text ? 2.0 : 3.0;
      operations_ += 2.0 * products * rows * static_cast<double>(parameter.shape.size()) *
                     static_cast<double>(network_.uses_of(matrix));
      if (matrix == 0 && recipe_.compute == Compute::kInt8 &&
          parameter.format.traits().holds_trits) {
        ceiling_ = Ceiling::kInt8Trits;
      }
      ++matrix;
    }
  }

  // "latent8 mlp:784-1024-1024-10 batch 256"
  std::string name() const override {
    return fmt::format("{} {} batch {}", recipe_name_, model_, batch_);
  }
  std::set<Ceiling> ceilings() const override { return {ceiling_}; }

  void measure() override {
    in_terms_of_bench([&] { measure_steps(); });
  }

  BenchEntry entry(const CeilingValues& ceilings) const override {
    const StepSeconds step = median_step();
    const double gop_per_second = 1e-9 * operations_ / step.whole;
    const double share = share_of(ceilings, ceiling_, gop_per_second);
    const auto [forward, backward, update] = step.phases;
    const double rows = static_cast<double>(batch_ * network_.labels_per_row()) / step.whole;
    const auto milliseconds = [](double seconds) { return significant(1e3 * seconds, 3); };
    return {fmt::format("{} batch {}", model_, batch_),
            {recipe_name_, milliseconds(step.whole), milliseconds(forward), milliseconds(backward),
             milliseconds(update), significant(rows, 3), significant(gop_per_second, 3),
             percent(share, 0), ceiling_name(ceiling_),
             human_bytes(static_cast<double>(peak_live_bytes_))},
            {{"name", name()},
             {"recipe", recipe_name_},
             {"compute", compute_name(recipe_.compute)},
             {"model", model_},
             {"batch", batch_},
             {"unit", "ms"},
             {"value", 1e3 * step.whole},
             {"forward_ms", 1e3 * forward},
             {"backward_ms", 1e3 * backward},
             {"update_ms", 1e3 * update},
             {"gop_per_s", gop_per_second},
             {"ceiling", ceiling_name(ceiling_)},
             {"share", share},
             {"peak_live_bytes", peak_live_bytes_},
             {"tokens_per_s", network_.is_text ? rows : std::nan("")},
             {"counted", network_.is_text ? "projections" : "weights"}}};
  }

 private:
  void measure_steps() {
    const SyntheticBatch batch(network_, batch_);
    const std::int64_t before = ledger::live_total();
    ledger::reset_peak();
    const auto model = make_model(model_, network_.features, network_.outputs, recipe_, 1);
    Optimizer optimizer = make_optimizer(*model, recipe_, 1000000, 1);
    Tape tape;
    const Dataset no_data;
    const TrainSpec spec;
    const auto task = loss_of(network_, no_data);
    for (int step = 0; step < kWarmSteps + kTimedSteps; ++step) {
      StepSeconds measured;
      const Job job{spec, recipe_, *task, *model, optimizer, tape, nullptr, &measured.phases};
      bool finite = false;
      try {
        finite = timed(&measured.whole, [&] { return train_step(job, batch.whole()); }).finite;
      } catch (const Diverged&) {
      }
      check(finite, "bench: recipe '", recipe_.name,
            "' makes a loss that is not finite on random numbers; lower its learning rate");
      if (step >= kWarmSteps) steps_.push_back(measured);
    }
    peak_live_bytes_ = std::max(peak_live_bytes_, ledger::peak_total() - before);
  }

  // Returns the step whose whole is the median; of an even number, the lower one in the middle.
  StepSeconds median_step() const {
    std::vector<StepSeconds> steps = steps_;
    std::sort(steps.begin(), steps.end(),
              [](const StepSeconds& a, const StepSeconds& b) { return a.whole < b.whole; });
    return steps.at((steps.size() - 1) / 2);
  }

  std::string recipe_name_, model_;
  std::int64_t batch_;
  Recipe recipe_;
  SyntheticTask network_;
  double operations_ = 0.0;  // of one step: two for each product of a matrix product
  Ceiling ceiling_ = Ceiling::kFp32;
  std::int64_t peak_live_bytes_ = 0;  // the most that the engine held at a time, without the batch
  std::vector<StepSeconds> steps_;
};

}  // namespace

void check_step_model(const std::string& model) {
  in_terms_of_bench([&] { synthetic_task(model); });
}

std::unique_ptr<Measurement> step_measurement(const std::string& recipe, const std::string& model,
                                              std::int64_t batch) {
  return in_terms_of_bench([&] { return std::make_unique<StepMeasurement>(recipe, model, batch); });
}

}  // namespace tritgrad
