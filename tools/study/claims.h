// Sentences about measured numbers. Nothing is known here before it is measured: the numbers choose
// the words, so a sentence cannot outlive the number that it rests on.
#pragma once

#include <string>
#include <vector>

#include "tools/study/study_run.h"

namespace tritgrad {

// In shorter runs tremor and periods are not told from the fall of the loss: ten of the longest
// periods (ten epochs of Breast Cancer) on each side of a smoothing window.
inline constexpr int kEpochsToJudge = 200;

// A number of each seed, with what stands for it in a sentence.
struct Sample {
  std::string name;
  std::vector<double> values;
};

// Losses at the end (see end_loss), none smaller than what can be resolved.
Sample end_sample(const StudyLine& line, const StudyResults& results);
// Mean distance of an epoch's loss from those around it, as a share.
Sample roughness_sample(const StudyLine& line, const StudyResults& results);

// In how many seeds the loss repeats itself when steps modulo ten and epochs come round together.
int count_beats(const std::vector<Curve>& curves);
// "in 2 of 3 seeds"
std::string of_seeds(int count, std::size_t seeds);

enum class Verdict { kLower, kHigher, kUnclear };
// `a` against `b`, seed by seed: lower or higher only if all seeds say so and the medians differ by
// more than a tenth. A value that is not finite counts as higher than all others.
Verdict compare_samples(const Sample& a, const Sample& b);

// "0.61 times, calmer in every seed", "1.05 times, about the same", "1.3 times, no clear
// difference".
std::string comparison(const Sample& a, const Sample& b, const std::string& if_lower,
                       const std::string& if_higher);

// "0.0137", or "less than 6e-08" for what cannot be resolved.
std::string loss_text(double loss);
// "2.63 %", "0.0390 %"
std::string share_text(double share);
// "2.5", "0.87", and near the tenth within which medians count as the same as many digits as show
// on which side it is: "1.05", "1.1004".
std::string ratio_text(double ratio);
// "density 1 % at 0.034, 2.5 times that: worse in 3 of 3 seeds"
std::string end_phrase(const Sample& sample, const Sample& reference);
// "Iris, correct form: no compression ends at a loss of 0.0137; ..." for a whole panel.
std::string end_sentence(const StudyPanel& panel, const StudyResults& results);
// For a panel of falling densities: from where on the end is clearly worse.
std::string onset_sentence(const StudyPanel& panel, const StudyResults& results);
// How much the loss trembles: the lines of one panel beside those of another.
std::string roughness_sentence(const StudyPanel& panel, const StudyPanel& other,
                               const StudyResults& results);

// Buckets of the error feedback whose numbers were all equal, in all runs together.
std::string bucket_sentence(const StudyResults& results);

// What the pictures of a figure of losses show.
std::vector<std::string> figure_claims(const StudyFigure& figure, const StudyResults& results);
// About bytes and seconds.
std::vector<std::string> cost_claims(const std::vector<CostPoint>& costs);
// The finding in a few sentences.
std::string study_headline(const StudyResults& results);

// Of one number over seeds: "0.0137 (0.0120 to 0.0151)", or the number alone if there is one.
std::string sample_text(const std::vector<double>& values);

}  // namespace tritgrad
