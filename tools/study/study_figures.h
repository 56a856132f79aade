// The study of MicroAdam: the ways of training that it compares, and which of them in which figure.
#pragma once

#include <string>
#include <vector>

#include "models/recipes/recipe.h"

namespace tritgrad {

enum class Form {
  kAdam,       // AdamW without decay: what MicroAdam stands for
  kCorrected,  // MicroAdam; moments divided by the mass of the window
  kPublished,  // MicroAdam; divided by 1 - beta^t, as in the paper
  kStudy,      // MicroAdam as in the study's code: ages scrambled, bias corrected twice
};

struct Variant {
  std::string data = "iris";  // or "wdbc"
  Form form = Form::kCorrected;
  double density = 1.0;   // share of each tensor that a row of the window keeps; 1: no compression
  int feedback_bits = 0;  // of the error feedback; 0: none
  bool standardized = true;
  bool reshuffled = true;  // else the same batches in the same order in every epoch
  double rate = 1.0;       // times the learning rate of all others
};

// "Adam", "correct form", "published form", "the study's form"
std::string form_name(Form form);
// The column of a CSV file: "iris/corrected/density=1%/feedback=4bit".
std::string variant_key(const Variant& variant);
// How many times as long as the correct form's the published form's updates become from the same
// window: its moments are divided by 1 - beta^t, which goes to 1, and not by 1 - beta^10.
double published_rate();
// "mlp:8:norm=none": the network of the study has one hidden layer of eight rectifiers.
std::string study_model();

// How a variant is trained: rule, rates and formats.
Recipe variant_recipe(const Variant& variant);

// The share of a network's parameters that a row of the window really keeps: every tensor keeps
// ceil(density * elements), and no tensor fewer than one.
double kept_share(const Variant& variant);

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
