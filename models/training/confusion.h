// The confusion table: how many rows of each class a model takes for which class.
//
// Accuracy hides what becomes of rare classes: where 99 rows in 100 are of one class, a model that
// always names it is right 99 times in 100. Its balanced accuracy, the mean over the classes of the
// share of their rows that is right (the mean recall), is one in two.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/tensor.h"

namespace tritgrad {

struct Confusion {
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> counts;  // [class of the row][class that is predicted]

  Confusion() = default;
  explicit Confusion(const std::vector<std::string>& class_names);

  // Counts rows by their label and by their largest logit, the first of equals.
  void add(const Tensor& logits, std::span<const std::int32_t> labels);
  // Adds the counts of another table of the same classes.
  void add(const Confusion& other);

  // Returns the share of the rows of a class that is right; 0 for a class without rows.
  double recall(std::size_t actual) const;
  // Returns the mean recall of the classes that have rows, in [0, 1]; 0 without any rows.
  double balanced_accuracy() const;

 private:
  std::int64_t rows_of(std::size_t actual) const;
};

// Returns true where the largest class has at least half as many rows again as the smallest, so
// that accuracy alone does not tell how good a model is. Tables of more than 256 classes are too
// large to be kept: false.
bool has_uneven_classes(const Dataset& dataset);

}  // namespace tritgrad
