// All training runs of a study, each once, and what is known of them over seeds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/study/state_and_speed.h"
#include "tools/study/study_figures.h"
#include "tools/study/train_curve.h"

namespace tritgrad {

struct StudyOptions {
  int epochs = 1000;
  int seeds = 3;  // 1 .. seeds
  bool quiet = false;
};

struct StudyResults {
  StudyOptions options;
  std::vector<StudyFigure> figures;
  std::map<std::string, std::vector<Curve>> curves;  // by variant_key; one for each seed
  std::vector<CostPoint> costs;
  double seconds = 0.0;  // of the training runs

  const std::vector<Curve>& of(const Variant& variant) const;
  // One number of every seed, in the order of the seeds.
  template <typename NumberOf>
  std::vector<double> numbers(const Variant& variant, const NumberOf& number_of) const {
    std::vector<double> values;
    for (const Curve& curve : of(variant)) values.push_back(number_of(curve.numbers));
    return values;
  }
};

// Trains every variant of `figures` with every seed, several runs at a time. Throws Interrupted
// after a SIGINT.
StudyResults run_study(std::vector<StudyFigure> figures, const StudyOptions& options);

// What is drawn of one number over seeds. As in median(), values that are not finite count as
// larger than all others.
struct Spread {
  double median = 0.0, low = 0.0, high = 0.0;
};
Spread spread_of(std::vector<double> values);  // at least one

// Of the loss of each epoch, of the autocorrelation at lags from 1 on, and of the difference of
// consecutive updates at each of the ten phases.
std::vector<Spread> epoch_spreads(const std::vector<Curve>& curves);
std::vector<Spread> autocorrelation_spreads(const std::vector<Curve>& curves);
std::vector<Spread> turn_spreads(const std::vector<Curve>& curves);

}  // namespace tritgrad
