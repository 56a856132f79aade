// What a run is judged by: one number, its score, of a metric that its task has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "engine/data/dataset.h"

namespace tritgrad {

enum class Metric {
  kAccuracy,     // the fraction of rows that are right, in [0, 1]
  kRmse,         // the root of the mean squared error, in the units of the label
  kBitsPerByte,  // the cross-entropy of a text, in bits for each of its bytes
};

// Returns the metric's name as keys of JSON write it.
constexpr std::string_view key_name(Metric metric) {
  switch (metric) {
    case Metric::kAccuracy:
      return "accuracy";
    case Metric::kRmse:
      return "rmse";
    case Metric::kBitsPerByte:
      break;
  }
  return "bits_per_byte";
}

// Returns the metric's name as sentences and tables write it.
constexpr std::string_view to_text(Metric metric) {
  switch (metric) {
    case Metric::kAccuracy:
      return "accuracy";
    case Metric::kRmse:
      return "RMSE";
    case Metric::kBitsPerByte:
      break;
  }
  return "bits a byte";
}

constexpr bool higher_is_better(Metric metric) { return metric == Metric::kAccuracy; }

// Rises with the score of a better run.
constexpr double worth(double score, Metric metric) {
  return higher_is_better(metric) ? score : -score;
}

// Returns the metric that models of the data are judged by.
inline Metric metric_of(const Dataset& dataset) {
  if (dataset.is_text()) return Metric::kBitsPerByte;
  return dataset.is_regression() ? Metric::kRmse : Metric::kAccuracy;
}

// Returns the key of the score on some rows, "test_accuracy" for "test".
inline std::string score_key(std::string_view rows, Metric metric) {
  return concat(rows, "_", key_name(metric));
}

// Returns the metric of that key_name(), if there is one.
constexpr std::optional<Metric> find_metric(std::string_view name) {
  for (const Metric metric : {Metric::kAccuracy, Metric::kRmse, Metric::kBitsPerByte}) {
    if (key_name(metric) == name) return metric;
  }
  return std::nullopt;
}

}  // namespace tritgrad
