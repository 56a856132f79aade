// How scores are written: accuracies in percent and their differences in points, RMSE and its
// differences in the units of the label.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "models/training/metric.h"
#include "tools/report/number_text.h"

namespace tritgrad {

struct ScoreUnit {
  static constexpr int kDigits = 4;
  static constexpr int kMostDecimals = 9;  // smaller errors are written with an exponent

  Metric metric = Metric::kAccuracy;
  int decimals = 2;

  // Scores as they are written.
  double written(double score) const { return metric == Metric::kAccuracy ? 100.0 * score : score; }
  std::string text(double score) const {
    return decimals > kMostDecimals ? significant(written(score), kDigits)
                                    : fixed(written(score), decimals);
  }
  // With what belongs to the number: "98.25 %".
  std::string full_text(double score) const { return text(score) + sign(); }
  const char* sign() const { return metric == Metric::kAccuracy ? " %" : ""; }
  const char* of_difference() const { return metric == Metric::kAccuracy ? " points" : ""; }
  // Rises with the score of a better run.
  double worth(double score) const { return tritgrad::worth(score, metric); }
};

// Returns the unit of scores about as large as `typical`: RMSE is written with four digits.
inline ScoreUnit score_unit(Metric metric, double typical) {
  if (metric == Metric::kAccuracy || !(typical > 0.0)) return {metric, 2};
  const int exponent = static_cast<int>(std::floor(std::log10(typical)));
  return {metric, std::max(ScoreUnit::kDigits - 1 - exponent, 0)};
}

}  // namespace tritgrad
