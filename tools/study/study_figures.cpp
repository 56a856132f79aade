#include "tools/study/study_figures.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "engine/data/open_dataset.h"
#include "models/networks/model.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999;
constexpr int kWindow = 10;

const char* form_slug(Form form) {
  switch (form) {
    case Form::kAdam:
      return "adam";
    case Form::kCorrected:
      return "corrected";
    case Form::kPublished:
      return "published";
    case Form::kStudy:
      return "study";
  }
  return "";
}

// The study rounds its error feedback to the nearest of 16 levels between the extremes of the whole
// tensor, for which 4096 elements are more than enough here; ours rounds stochastically, in buckets
// of 64.
std::string microadam_keys(const Variant& variant) {
  const bool study = variant.form == Form::kStudy;
  return fmt::format(
      "rule = \"microadam\"\ndensity = {}\nwindow = {}\nfeedback_bits = {}\nbucket = {}\n"
      "feedback_rounding = \"{}\"\nwindow_form = \"{}\"\n",
      variant.density, kWindow, variant.feedback_bits, study ? 4096 : 64,
      study ? "nearest" : "stochastic", form_slug(variant.form));
}

constexpr const char* kData[] = {"iris", "wdbc"};
constexpr Form kForms[] = {Form::kCorrected, Form::kStudy};
constexpr double kStudyDensity = 0.01;

// The same lines for each data set and form.
template <typename Lines>
std::vector<StudyPanel> panels_of(const Lines& lines_of) {
  std::vector<StudyPanel> panels;
  for (const char* data : kData) {
    for (const Form form : kForms) {
      panels.push_back({data, form_name(form), lines_of(std::string(data), form)});
    }
  }
  return panels;
}

StudyFigure compression() {
  return {3, "Compression without error feedback",
          "MicroAdam with the whole gradient in every row of its window, with a tenth and with a "
          "hundredth of it. What is not kept is lost.",
          panels_of([](const std::string& data, Form form) {
            return std::vector<StudyLine>{{"no compression", 0, {data, form, 1.0, 0}},
                                          {"density 10 %", 1, {data, form, 0.1, 0}},
                                          {"density 1 %", 2, {data, form, 0.01, 0}}};
          })};
}

StudyFigure feedback() {
  return {4, "Error feedback",
          "One hundredth of the gradient in every row, with a 4-bit error feedback and without, "
          "against the whole gradient.",
          panels_of([](const std::string& data, Form form) {
            return std::vector<StudyLine>{
                {"no compression", 0, {data, form, 1.0, 0}},
                {"1 %, 4-bit feedback", 3, {data, form, kStudyDensity, 4}},
                {"1 %, no feedback", 2, {data, form, kStudyDensity, 0}}};
          })};
}

StudyFigure falling_density() {
  return {
      5, "Falling density",
      "Ever smaller parts of the gradient, with a 4-bit error feedback. Every tensor keeps "
      "ceil(density × elements), and no tensor fewer than one.",
      panels_of([](const std::string& data, Form form) {
        std::vector<StudyLine> lines;
        for (const double density : {0.5, 0.2, 0.1, 0.05, 0.02, 0.01}) {
          lines.push_back(
              {density_title(density), static_cast<int>(lines.size()), {data, form, density, 4}});
        }
        return lines;
      })};
}

StudyFigure against_adam() {
  StudyFigure figure{6,
                     "Adam and MicroAdam",
                     "The same betas (0.9, 0.999) and the same learning rate; MicroAdam keeps 1 % "
                     "and has a 4-bit error feedback.",
                     {}};
  for (const std::string data : kData) {
    figure.panels.push_back(
        {data,
         "",
         {{"Adam", 0, {data, Form::kAdam, 1.0, 0}},
          {"MicroAdam, correct form", 1, {data, Form::kCorrected, kStudyDensity, 4}},
          {"MicroAdam, published form", 3, {data, Form::kPublished, kStudyDensity, 4}},
          {"MicroAdam, the study's form", 2, {data, Form::kStudy, kStudyDensity, 4}}}});
  }
  return figure;
}

StudyFigure raw_data() {
  return {7, "Data as they are",
          "Features in their own units: fractions beside hundreds. Density 1 %; the range of what "
          "the error feedback has to hold is that of the largest gradients.",
          panels_of([](const std::string& data, Form form) {
            return std::vector<StudyLine>{
                {"Adam", 0, {data, Form::kAdam, 1.0, 0, false}},
                {"8-bit feedback", 1, {data, form, kStudyDensity, 8, false}},
                {"4-bit feedback", 3, {data, form, kStudyDensity, 4, false}},
                {"no feedback", 2, {data, form, kStudyDensity, 0, false}}};
          })};
}

StudyFigure fixed_batches() {
  StudyFigure figure{9,
                     "Where the trembling comes from",
                     "The study's curves tremble, and it could not say why: in its code a "
                     "gradient's weight depends on the step in which it was made. Here the same "
                     "batches come in the same order in every epoch, so that such a weight meets "
                     "the same rows again and again. The correct form stands beside the published "
                     "one at the rate that its bias correction comes to.",
                     {}};
  for (const std::string data : kData) {
    for (const bool compressed : {false, true}) {
      StudyPanel panel{data, compressed ? "1 %, 4-bit feedback" : "no compression", {}};
      int style = 1;
      for (const Form form : {Form::kCorrected, Form::kPublished, Form::kStudy}) {
        Variant variant{data, form, compressed ? kStudyDensity : 1.0, compressed ? 4 : 0};
        variant.reshuffled = false;
        panel.lines.push_back({form_name(form), style, variant});
        style = style == 1 ? 3 : 2;
      }
      Variant faster = panel.lines.front().variant;
      faster.rate = published_rate();
      panel.lines.push_back(
          {form_name(Form::kCorrected) + " at " + significant(faster.rate, 2) + " times the rate",
           4, faster});
      figure.panels.push_back(std::move(panel));
    }
  }
  return figure;
}

}  // namespace

std::string form_name(Form form) {
  switch (form) {
    case Form::kAdam:
      return "Adam";
    case Form::kCorrected:
      return "correct form";
    case Form::kPublished:
      return "published form";
    case Form::kStudy:
      return "the study's form";
  }
  return "";
}

std::string variant_key(const Variant& variant) {
  std::string key = fmt::format("{}/{}", variant.data, form_slug(variant.form));
  if (variant.form != Form::kAdam) {
    key += fmt::format("/density={:g}%", 100.0 * variant.density);
    key += variant.feedback_bits == 0 ? std::string("/feedback=none")
                                      : fmt::format("/feedback={}bit", variant.feedback_bits);
  }
  if (!variant.standardized) key += "/raw";
  if (variant.rate != 1.0) key += fmt::format("/rate={:.3g}x", variant.rate);
  return variant.reshuffled ? key : key + "/fixed-batches";
}

double published_rate() {
  return (1.0 - std::pow(kBeta1, kWindow)) / std::sqrt(1.0 - std::pow(kBeta2, kWindow));
}

std::string study_model() { return "mlp:8:norm=none"; }

Recipe variant_recipe(const Variant& variant) {
  const std::string rule =
      variant.form == Form::kAdam ? std::string("rule = \"adamw\"\n") : microadam_keys(variant);
  const std::string update =
      fmt::format("{}lr = {}\nbeta1 = {}\nbeta2 = {}\neps = 1e-8\nschedule = \"constant\"\n", rule,
                  kRate * variant.rate, kBeta1, kBeta2);
  return parse_recipe(fmt::format("name = \"{}\"\nnon_finite = \"skip\"\n[weight]\nformat = "
                                  "\"fp32\"\n{}[bias]\nformat = \"fp32\"\n{}",
                                  variant_key(variant), update, update),
                      "the MicroAdam study");
}

double kept_share(const Variant& variant) {
  const Dataset dataset = builtin_dataset(variant.data);
  double kept = 0.0, all = 0.0;
  for (const ParameterSpec& parameter :
       plan_model(study_model(), dataset.features, dataset.classes(), variant_recipe(variant))) {
    const auto elements = static_cast<double>(parameter.shape.size());
    kept += std::ceil(variant.density * elements);
    all += elements;
  }
  return kept / all;
}

std::string StudyPanel::title() const {
  return form.empty() ? data_title(data) : data_title(data) + ", " + form;
}

std::vector<StudyFigure> study_figures() {
  return {compression(),  feedback(), falling_density(),
          against_adam(), raw_data(), fixed_batches()};
}

std::string data_title(const std::string& data) {
  return data == "iris" ? "Iris" : "Breast Cancer";
}

std::string network_title(const std::string& data) {
  const Dataset dataset = builtin_dataset(data);
  return fmt::format("{}-8-{}", dataset.features, dataset.classes());
}

std::string density_title(double density) { return fmt::format("{:g} %", 100.0 * density); }

std::vector<Variant> all_variants(const std::vector<StudyFigure>& figures) {
  std::vector<Variant> variants;
  std::set<std::string> seen;
  for (const StudyFigure& figure : figures) {
    for (const StudyPanel& panel : figure.panels) {
      for (const StudyLine& line : panel.lines) {
        if (seen.insert(variant_key(line.variant)).second) variants.push_back(line.variant);
      }
    }
  }
  return variants;
}

}  // namespace tritgrad
