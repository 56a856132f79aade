// Trains one variant of the study and keeps its curve.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/data/dataset.h"
#include "tools/study/curve_numbers.h"
#include "tools/study/variant.h"

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

}  // namespace tritgrad
