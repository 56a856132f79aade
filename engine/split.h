// Which rows are trained on, watched, and tested.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/dataset.h"

namespace tritgrad {

// Every row of the data set is in exactly one part.
struct Split {
  std::vector<std::int32_t> train;
  std::vector<std::int32_t> val;
  std::vector<std::int32_t> test;
};

inline constexpr double kTestFraction = 0.2;

// The published test rows where there are some; else a fifth of each class, drawn once and for all: it
// does not depend on the seed of a run.
Split fixed_split(const Dataset& dataset);

// Part `fold` (0 .. folds-1) of a K-fold cross-validation is the test part. Classes are spread evenly:
// their counts in two folds differ by at most one. The published test rows count like all others.
// Throws Error when folds < 2 or a class has fewer rows than folds.
Split fold_split(const Dataset& dataset, int folds, int fold, std::uint64_t seed);

// Moves `fraction` of each class from train to val, the same rows whatever the seed of the run.
// Throws Error when either part would be empty.
void carve_validation(Split& split, const Dataset& dataset, double fraction);

}  // namespace tritgrad
