// Sentences about measured numbers. Nothing is known here before it is measured: the numbers choose
// the words, so a sentence cannot outlive the number that it rests on.
#pragma once

#include <string>
#include <vector>

#include "tools/reproduce/study_run.h"

namespace tritgrad {

// A number of each seed, with what stands for it in a sentence.
struct Sample {
  std::string name;
  std::vector<double> values;
};

enum class Verdict { kLower, kHigher, kUnclear };
// `a` against `b`, seed by seed: lower or higher only if all seeds say so and the medians differ by
// more than a tenth. A value that is not finite counts as higher than all others.
Verdict compare_samples(const Sample& a, const Sample& b);

// "density 1 % ends at 0.034, 2.5 times that of no compression: worse in 3 of 3 seeds"
std::string end_phrase(const Sample& sample, const Sample& reference);
// "Iris, correct form: no compression ends at a loss of 0.0137; ..." for a whole panel.
std::string end_sentence(const StudyPanel& panel, const StudyResults& results);
// How much the loss moves from epoch to epoch: `lines` of one panel beside those of another.
std::string roughness_sentence(const StudyPanel& panel, const StudyPanel& other,
                               const StudyResults& results);
// Whether a quantity varies with the step modulo ten by more than noise does. `what` begins the
// sentence.
std::string period_sentence(const std::string& what, const std::vector<PhaseRatio>& seeds);

// What the pictures of one figure show.
std::vector<std::string> figure_claims(const StudyFigure& figure, const StudyResults& results);
// About the period of the study's instability.
std::vector<std::string> period_claims(const StudyResults& results);
// About bytes and seconds.
std::vector<std::string> cost_claims(const std::vector<CostPoint>& costs);
// The finding in a few sentences.
std::string study_headline(const StudyResults& results);

// Of one number over seeds: "0.0137 (0.0120 to 0.0151)", or the number alone if there is one.
std::string sample_text(const std::vector<double>& values);

}  // namespace tritgrad
