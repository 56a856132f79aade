// The figures of the MicroAdam study: which variants are compared in which picture.
#pragma once

#include <string>
#include <vector>

#include "tools/study/variant.h"

namespace tritgrad {

struct StudyLine {
  std::string name;
  int style = 0;
  Variant variant;
};

// One pair of axes. The first line is what the others are compared with.
struct StudyPanel {
  std::string data;
  std::string form;  // whose rule; empty where the lines differ in it
  std::vector<StudyLine> lines;

  std::string title() const;  // "Iris, correct form"
};

struct StudyFigure {
  int number = 0;
  std::string title;
  std::string question;            // what is compared, and what is held fixed
  std::vector<StudyPanel> panels;  // those of one data set share their axes
};

std::vector<StudyFigure> study_figures();

// "Iris", "Breast Cancer"
std::string data_title(const std::string& data);
// "4-8-3", "30-8-2"
std::string network_title(const std::string& data);
// "1 %"
std::string density_title(double density);

// Every variant that some figure asks for, once.
std::vector<Variant> all_variants(const std::vector<StudyFigure>& figures);

}  // namespace tritgrad
