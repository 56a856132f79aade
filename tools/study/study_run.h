// All measurements of a study: a training run of every variant with every seed, and the cost of a
// step by number of parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "optim/optimizer.h"
#include "tools/study/curve_numbers.h"
#include "tools/study/study_figures.h"

namespace tritgrad {

inline constexpr std::int64_t kStudyBatch = 16;

struct Curve {
  std::vector<double> epoch_loss;  // mean over the rows; NaN from the epoch in which it broke
  CurveNumbers numbers;
};

// The middle of some values, and how far they reach.
struct Spread {
  double median = 0.0, low = 0.0, high = 0.0;
};

struct CostPoint {
  std::int64_t parameters = 0;
  std::string rule;               // "Adam", "MicroAdam"
  std::int64_t state_bytes = 0;   // by formula, Optimizer::state_bytes
  std::int64_t ledger_bytes = 0;  // booked as moments while the optimizer was made
  Spread seconds;                 // of a step: median and quartiles of the samples
  int samples = 0;

  double bytes_per_parameter() const {
    return static_cast<double>(state_bytes) / static_cast<double>(parameters);
  }
};

struct StudyOptions {
  int epochs = 1000;
  int seeds = 3;  // 1 .. seeds
  bool quiet = false;
};

struct StudyResults {
  StudyOptions options;
  std::vector<StudyFigure> figures;
  std::map<std::string, std::vector<Curve>> curves;  // by variant_key; one for each seed
  std::vector<CostPoint> costs;
  double seconds = 0.0;  // of the training runs

  const std::vector<Curve>& of(const Variant& variant) const;
  // Returns one number of every seed, in the order of the seeds.
  template <typename NumberOf>
  std::vector<double> numbers(const Variant& variant, const NumberOf& number_of) const {
    std::vector<double> values;
    for (const Curve& curve : of(variant)) values.push_back(number_of(curve.numbers));
    return values;
  }
};

// Trains every variant of `figures` with every seed, several runs at a time. Throws Interrupted
// after a SIGINT.
StudyResults run_study(std::vector<StudyFigure> figures, const StudyOptions& options);

// Trains one variant on the rows of the fixed training part; the test accuracy is that of the fixed
// test part. Unlike train() this keeps the updates of single steps, takes features in their own
// units if the variant says so, and records a loss that is not finite instead of refusing to go on.
// `after_epoch(loss)` is called after every epoch.
Curve train_curve(const Dataset& dataset, const Variant& variant, int epochs, std::uint64_t seed,
                  const std::function<void(double loss)>& after_epoch = {});

// Times steps of one matrix of each size, as square as can be. Both rules take the same gradients
// in turn, first until MicroAdam's window is full, then `samples` times against the clock. A sample
// of a small matrix is the mean of many steps. Throws Interrupted after a SIGINT.
std::vector<CostPoint> measure_costs(const std::vector<std::int64_t>& sizes, int samples);

// Counts the buckets of MicroAdam's error feedback whose bounds are equal (BucketCount). It reads
// the bounds in the optimizer's own state, which must outlive it.
class ConstantBuckets {
 public:
  explicit ConstantBuckets(Optimizer& optimizer);

  void count_step();  // called after a step
  const BucketCount& count() const { return count_; }

 private:
  std::vector<std::span<const std::uint16_t>> bounds_;  // bf16 [bucket][low, high]
  BucketCount count_;
};

}  // namespace tritgrad
