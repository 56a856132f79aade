// The study of MicroAdam: the variants of training that it compares, and the figures that show
// them.
#pragma once

#include <string>
#include <vector>

#include "engine/data/dataset.h"
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
  double density = 1.0;        // share of each tensor that a row of the window keeps; 1: all of it
  int feedback_bits = 0;       // of the error feedback; 0: none
  bool standardized = true;    // false: features in their own units
  bool reshuffled = true;      // false: the same batches in the same order in every epoch
  double rate_multiple = 1.0;  // the learning rate is this multiple of all others'
};

// The name of a variant in CSV files: "iris/corrected/density=1%/feedback=4bit".
std::string variant_key(const Variant& variant);
// The published form divides its moments by 1 - beta^t, which goes to 1, and not by 1 - beta^10.
// From the same window its updates therefore become this many times as long as the correct form's.
double published_rate_multiple();
// "mlp:8:norm=none": the network of the study has one hidden layer of eight rectifiers.
std::string study_model();
// The recipe says rule, rates and formats of a variant.
Recipe variant_recipe(const Variant& variant);

// The share of a network's parameters that a row of the window really keeps: every tensor keeps
// ceil(density * elements), and no tensor fewer than one.
double kept_share(const Variant& variant);

struct StudyLine {
  std::string name;
  int style = 0;  // of LineSeries
  Variant variant;
};

// A panel is one pair of axes.
struct StudyPanel {
  std::string data;
  std::string subject;  // what its lines share beside the data; may be empty
  std::vector<StudyLine> lines;

  std::string title() const;  // "Iris, correct form"
};

struct StudyFigure {
  int number = 0;
  std::string title;
  std::string question;            // what is compared, and what is held fixed
  std::vector<StudyPanel> panels;  // those of one data set share their axes
};

// The figures whose curves are trained: 3 to 7 and 9.
std::vector<StudyFigure> study_figures();

// Returns the built-in data set of a variant, "iris" or "wdbc". It is parsed once, as that takes
// longer than a figure.
const Dataset& study_dataset(const std::string& name);

std::string network_title(const std::string& data);  // "4-8-3", "30-8-2"

// Lists every variant that some figure asks for, once, in the order of the figures.
std::vector<Variant> all_variants(const std::vector<StudyFigure>& figures);

}  // namespace tritgrad
