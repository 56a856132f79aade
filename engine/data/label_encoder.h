// From label texts to class numbers 0 .. classes-1.
//
// When every label is a number, classes are the distinct values in increasing order ("1" and "1.0"
// are the same class); otherwise they are the distinct texts in alphabetical order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

class LabelEncoder {
 public:
  // More distinct labels than this are a measured quantity and not a class.
  static constexpr std::size_t kMaxClasses = 65536;

  // `where` names the source in messages.
  explicit LabelEncoder(std::string where) : where_(std::move(where)) {}

  void add(std::string_view label);

  // Sets labels and class_names. A non-empty `order` gives the classes and their numbers
  // explicitly, and any other label is refused. Throws when fewer than two classes occur, or so
  // many that they look like measured values, unless the rows are there `to_score` a model.
  void finish(Dataset& dataset, const std::vector<std::string>& order, bool to_score = false) const;

 private:
  std::string where_;
  std::map<std::string, std::int32_t, std::less<>> ids_;  // in order of first appearance
  std::vector<std::int32_t> labels_;
};

}  // namespace tritgrad
