#include "engine/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/check.h"
#include "engine/random.h"

namespace tritgrad {
namespace {

// Fixed test and validation parts belong to the data, not to a run.
constexpr std::uint64_t kFixedSeed = 20'110'125;

using Rows = std::vector<std::int32_t>;

void shuffle(Rows& rows, const RandomKey& key) {
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
}

// The rows of each class, in an order drawn from `seed` and `subject`.
std::vector<Rows> shuffled_classes(const Dataset& dataset, const Rows& rows, std::uint64_t seed,
                                   const char* subject) {
  std::vector<Rows> classes(dataset.class_names.size());
  for (std::int32_t row : rows) {
    classes[static_cast<std::size_t>(dataset.labels[static_cast<std::size_t>(row)])].push_back(row);
  }
  for (std::size_t c = 0; c < classes.size(); ++c) {
    shuffle(classes[c], {seed, random_stream(subject), static_cast<std::uint32_t>(c)});
  }
  return classes;
}

Rows all_rows(const Dataset& dataset) {
  Rows rows(static_cast<std::size_t>(dataset.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Divides `rows` by class: `fraction` of each goes to `taken`, the rest stays.
void take_fraction(const Dataset& dataset, double fraction, const char* subject, Rows& rows, Rows& taken) {
  Rows left;
  for (const Rows& members : shuffled_classes(dataset, rows, kFixedSeed, subject)) {
    const auto count = static_cast<std::ptrdiff_t>(
        std::lround(fraction * static_cast<double>(members.size())));
    taken.insert(taken.end(), members.begin(), members.begin() + count);
    left.insert(left.end(), members.begin() + count, members.end());
  }
  std::sort(taken.begin(), taken.end());
  std::sort(left.begin(), left.end());
  rows = std::move(left);
}

}  // namespace

Split fixed_split(const Dataset& dataset) {
  Split split;
  split.train = all_rows(dataset);
  if (dataset.published_test_rows > 0) {
    const auto test_begin = split.train.end() - dataset.published_test_rows;
    split.test.assign(test_begin, split.train.end());
    split.train.erase(test_begin, split.train.end());
  } else {
    take_fraction(dataset, kTestFraction, "test split", split.train, split.test);
  }
  check(!split.train.empty() && !split.test.empty(), "data set ", dataset.name, ": ", dataset.rows,
        " rows are too few for a training and a test part; add rows");
  return split;
}

Split fold_split(const Dataset& dataset, int folds, int fold, std::uint64_t seed) {
  check(folds >= 2 && fold >= 0 && fold < folds, "fold_split: fold ", fold, " of ", folds,
        "; at least 2 folds are needed");
  Split split;
  std::size_t next = 0;  // goes on from class to class, so that the folds are of equal size too
  const std::vector<Rows> classes = shuffled_classes(dataset, all_rows(dataset), seed, "folds");
  for (std::size_t c = 0; c < classes.size(); ++c) {
    check(static_cast<int>(classes[c].size()) >= folds, "data set ", dataset.name, ": class '",
          dataset.class_names[c], "' has ", classes[c].size(), " rows, too few for ", folds,
          " folds; use fewer");
    for (std::int32_t row : classes[c]) {
      const bool tested = static_cast<int>(next++ % static_cast<std::size_t>(folds)) == fold;
      (tested ? split.test : split.train).push_back(row);
    }
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.test.begin(), split.test.end());
  return split;
}

void carve_validation(Split& split, const Dataset& dataset, double fraction) {
  take_fraction(dataset, fraction, "validation split", split.train, split.val);
  check(!split.train.empty() && !split.val.empty(), "data set ", dataset.name, ": a validation part of ",
        fraction, " leaves ", split.train.size(), " rows to train and ", split.val.size(),
        " to watch; choose another share");
}

}  // namespace tritgrad
