// One way of training in the MicroAdam study: which data, which rule, how much of the gradient.
#pragma once

#include <string>

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

// The one place that says how a variant is trained.
Recipe variant_recipe(const Variant& variant);

// Shares of the parameters of a network that a row of the window really keeps: every tensor keeps
// ceil(density * elements), and no tensor fewer than one.
double kept_share(const Variant& variant);

}  // namespace tritgrad
