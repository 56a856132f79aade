#include "tools/study/study_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/data/open_dataset.h"
#include "engine/memory/parallel.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"

namespace tritgrad {
namespace {

struct Job {
  Variant variant;
  std::uint64_t seed = 1;
  const Dataset* dataset = nullptr;
  Curve* curve = nullptr;  // where the result goes
};

// Progress of runs that go on at the same time. Epochs, steps and rows count over all of them.
class SharedProgress {
 public:
  SharedProgress(const StudyOptions& options, int epochs, std::int64_t steps)
      : line_(stderr, options.quiet, epochs, steps) {}

  void add_epoch(std::int64_t steps, std::int64_t rows, double loss) {
    const std::lock_guard<std::mutex> lock(mutex_);
    steps_ += steps;
    rows_ += rows;
    line_.update(++epochs_, steps_, loss, rows_);
  }

 private:
  std::mutex mutex_;
  ProgressLine line_;
  int epochs_ = 0;
  std::int64_t steps_ = 0, rows_ = 0;
};

// value_of(curve, i) for i < count.
template <typename ValueOf>
std::vector<Spread> spreads_of(std::size_t count, const std::vector<Curve>& curves,
                               const ValueOf& value_of) {
  std::vector<Spread> spreads;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> values;
    for (const Curve& curve : curves) values.push_back(value_of(curve, i));
    spreads.push_back(spread_of(std::move(values)));
  }
  return spreads;
}

}  // namespace

const std::vector<Curve>& StudyResults::of(const Variant& variant) const {
  const auto found = curves.find(variant_key(variant));
  check(found != curves.end(), "study: no runs of '", variant_key(variant), "'");
  return found->second;
}

StudyResults run_study(std::vector<StudyFigure> figures, const StudyOptions& options) {
  const Clock::time_point start = Clock::now();
  StudyResults results{options, std::move(figures), {}, {}, 0.0};
  std::map<std::string, Dataset> datasets;
  std::map<std::string, std::int64_t> steps_per_epoch;
  const std::vector<Variant> variants = all_variants(results.figures);
  for (const Variant& variant : variants) {
    if (datasets.contains(variant.data)) continue;
    const Dataset& dataset =
        datasets.emplace(variant.data, builtin_dataset(variant.data)).first->second;
    steps_per_epoch[variant.data] = study_steps_per_epoch(dataset);
  }

  // Threads take the list in equal parts: short and long runs alternate with the seeds outermost.
  std::vector<Job> jobs;
  std::int64_t steps = 0;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    for (const Variant& variant : variants) {
      std::vector<Curve>& curves = results.curves[variant_key(variant)];
      curves.resize(static_cast<std::size_t>(options.seeds));
      jobs.push_back({variant, static_cast<std::uint64_t>(seed), &datasets.at(variant.data),
                      &curves[static_cast<std::size_t>(seed - 1)]});
      steps += options.epochs * steps_per_epoch[variant.data];
    }
  }
  const InterruptWatch watch;
  SharedProgress progress(options, options.epochs * static_cast<int>(jobs.size()), steps);
  parallel_for(static_cast<std::int64_t>(jobs.size()), [&](std::int64_t unit) {
    watch.end_if_interrupted(kNothingCameOfIt);
    const Job& job = jobs[static_cast<std::size_t>(unit)];
    const std::int64_t per_epoch = steps_per_epoch.at(job.variant.data);
    *job.curve = train_curve(*job.dataset, job.variant, options.epochs, job.seed, [&](double loss) {
      progress.add_epoch(per_epoch, per_epoch * kStudyBatch, loss);
      watch.end_if_interrupted(kNothingCameOfIt);
    });
  });
  results.seconds = seconds_since(start);
  return results;
}

Spread spread_of(std::vector<double> values) {
  for (double& value : values) {
    if (!std::isfinite(value)) value = std::numeric_limits<double>::infinity();
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

std::vector<Spread> epoch_spreads(const std::vector<Curve>& curves) {
  return spreads_of(curves.front().epoch_loss.size(), curves,
                    [](const Curve& curve, std::size_t epoch) { return curve.epoch_loss[epoch]; });
}

std::vector<Spread> autocorrelation_spreads(const std::vector<Curve>& curves) {
  return spreads_of(
      curves.front().numbers.autocorrelation.size() - 1, curves,
      [](const Curve& curve, std::size_t i) { return curve.numbers.autocorrelation[i + 1]; });
}

std::vector<Spread> turn_spreads(const std::vector<Curve>& curves) {
  return spreads_of(
      static_cast<std::size_t>(kStudyPeriod), curves,
      [](const Curve& curve, std::size_t phase) { return curve.numbers.turn_profile[phase]; });
}

}  // namespace tritgrad
