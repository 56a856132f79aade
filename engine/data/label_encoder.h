// From label texts to class numbers 0 .. classes-1.
//
// When every label is a number, classes are the distinct values in increasing order ("1" and "1.0"
// are the same class, called what stands first); otherwise they are the distinct texts in
// alphabetical order. Whole numbers from 2^53 on are told apart by their texts. A class is called
// what the training file calls it, in every other file too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

// Finds the classes that labels of any file mean: by text, else, where all classes are numbers, by
// value.
class ClassFinder {
 public:
  explicit ClassFinder(const std::vector<std::string>& classes);

  std::optional<std::int32_t> find(std::string_view label) const;

 private:
  std::map<std::string, std::int32_t, std::less<>> by_text_;
  std::map<double, std::int32_t> by_value_;  // empty unless all classes are numbers
};

// "t.csv, line 3": where a row stands, to begin a message.
using PlaceOfRow = std::function<std::string(std::int64_t row)>;

class LabelEncoder {
 public:
  // More distinct labels than this are a measured quantity and not a class.
  static constexpr std::size_t kMaxClasses = 65536;

  // In messages `where` names the source, and `advice` says how to give other labels.
  LabelEncoder(std::string where, std::string advice)
      : where_(std::move(where)), advice_(std::move(advice)) {}

  void add(std::string_view label);

  // Sets labels and class_names. A non-empty `order` gives the classes and their numbers
  // explicitly; any other label is refused with the place of its row. Throws when fewer than two
  // classes occur, or so many that they look like measured values, unless rows are there `to_score`
  // a model.
  void finish(Dataset& dataset, const std::vector<std::string>& order, const PlaceOfRow& place,
              bool to_score = false) const;

 private:
  std::string where_, advice_;
  std::map<std::string, std::int32_t, std::less<>> ids_;  // numbered as they first appeared
  std::vector<std::int32_t> labels_;
};

}  // namespace tritgrad
