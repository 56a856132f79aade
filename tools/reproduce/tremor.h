// The instability of the study: how strong it is in which form, and whether it has a period.
#pragma once

#include <string>
#include <vector>

#include "tools/reproduce/study_run.h"

namespace tritgrad {

// Whether a quantity of the steps varies with the step modulo ten by more than noise does. `what`
// begins the sentence.
std::string period_sentence(const std::string& what, const std::vector<PhaseRatio>& seeds);
// Whether the loss of the epochs has the period after which steps and epochs come round together.
std::string beat_sentence(const std::string& what, const std::vector<Curve>& curves);

// Steps: what varies with the step modulo ten, and what does not.
std::vector<std::string> period_claims(const StudyResults& results);
// Epochs: how much the loss trembles in which form, and whether periodically. `figure` is number 9.
std::vector<std::string> tremor_claims(const StudyFigure& figure, const StudyResults& results);

}  // namespace tritgrad
