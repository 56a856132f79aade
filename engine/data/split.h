// Which rows train, validate and test. Every split is stratified: in each part the rows of a class
// differ from their exact share by less than one; the rows of regression are drawn as those of one
// class. Rows are in increasing order within a part. Of a text the last tenth tests, at most
// 262,144 tokens, and the last windows of what is left validate.
#pragma once

#include <cstdint>

#include "engine/data/dataset.h"

namespace tritgrad {

using RowNumbers = DataVector<std::int32_t>;

struct Split {
  RowNumbers train;
  RowNumbers val;
  RowNumbers test;
};

// All rows train, published test rows too.
Split unsplit(const Dataset& dataset);

// Train and test. The test rows are the published ones where the data has them (test_fraction is
// not used then); otherwise they are drawn with a constant key, so that runs of every seed are
// comparable.
Split fixed_split(const Dataset& dataset, double test_fraction = 0.2);

// Cross-validation: fold `fold` of `folds` is the test part, the others train. The folds of one
// seed share no row and together hold all rows but the published test set, which takes no part.
Split fold_split(const Dataset& dataset, int folds, int fold, std::uint64_t seed);

// Moves this fraction of the training rows to `val`, drawn with a constant key.
Split carve_validation(Split split, const Dataset& dataset, double fraction);

}  // namespace tritgrad
