// Trains one variant of the study, and keeps its curve and what is measured of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
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

// Rows of the fixed training part; test accuracy is that of the fixed test part. Unlike train()
// this keeps losses and updates of single steps, takes data as they are if the variant says so, and
// records a loss that is not finite instead of refusing to go on.
// `after_epoch(loss)` is called after every epoch.
Curve train_curve(const Dataset& dataset, const Variant& variant, int epochs, std::uint64_t seed,
                  const std::function<void(double loss)>& after_epoch = {});

// Steps that train_curve takes in one epoch.
std::int64_t study_steps_per_epoch(const Dataset& dataset);

// Counts the buckets of MicroAdam's error feedback whose bounds are equal (BucketCount). It reads
// the bounds in the optimizer's own state, which must outlive it.
class ConstantBuckets {
 public:
  explicit ConstantBuckets(Optimizer& optimizer);

  void look();  // called after a step
  const BucketCount& count() const { return count_; }

 private:
  std::vector<std::span<const std::uint16_t>> bounds_;  // bf16 [bucket][low, high]
  BucketCount count_;
};

}  // namespace tritgrad
