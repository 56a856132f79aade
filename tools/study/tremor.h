// The instability of the study: how strong it is in which form, and whether it has a period.
#pragma once

#include <string>
#include <vector>

#include "tools/study/study_run.h"

namespace tritgrad {

// A quantity of the steps by the step modulo ten: "x by a factor of 2.58 (noise 1.05: a period of
// ten in 3 of 3 seeds)".
std::string period_phrase(const std::string& what, const std::vector<PhaseRatio>& seeds);
// Whether the loss of the epochs repeats itself when steps and epochs come round together.
std::string beat_phrase(const std::string& what, const std::vector<Curve>& curves);

// Steps: what varies with the step modulo ten, and what does not.
std::vector<std::string> period_claims(const StudyResults& results);
// Epochs: how much the loss trembles in which form, and whether periodically. `figure` is number 9.
std::vector<std::string> tremor_claims(const StudyFigure& figure, const StudyResults& results);
// The published form beside the correct one with the rate that its bias correction comes to.
std::vector<std::string> published_claims(const StudyFigure& figure, const StudyResults& results);

}  // namespace tritgrad
