#include "tools/study/study_figures.h"

#include <fmt/format.h>

#include <set>

#include "engine/data/builtin_data.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

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
                     "The same batches in the same order in every epoch, so that a weight that "
                     "depends on the step meets the same rows again and again.",
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
