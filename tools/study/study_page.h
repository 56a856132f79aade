// The study as one HTML page that needs nothing but itself: every figure with its question, its
// pictures and a table of what was measured. What follows from the numbers is written by hand, in
// docs/STUDY.md.
#pragma once

#include <string>

#include "tools/study/study_run.h"

namespace tritgrad {

struct StudyPage {
  std::string command;  // repeats the study when typed into a shell
  std::string machine;  // one line
};

std::string render_study(const StudyPage& page, const StudyResults& results);

}  // namespace tritgrad
