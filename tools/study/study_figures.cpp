#include "tools/study/study_figures.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "engine/data/open_dataset.h"
#include "engine/names.h"
#include "models/networks/model.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999;
constexpr int kWindow = 10;
constexpr double kStudyDensity = 0.01;

constexpr Names<Form, 4> kFormKeys = {"form of MicroAdam",
                                      {{{Form::kAdam, "adam"},
                                        {Form::kCorrected, "corrected"},
                                        {Form::kPublished, "published"},
                                        {Form::kStudy, "study"}}}};

// The study rounds its error feedback to the nearest of 16 levels between the extremes of the whole
// tensor, for which 4096 elements are more than enough here; ours rounds stochastically, in buckets
// of 64.
std::string microadam_keys(const Variant& variant) {
  const bool study = variant.form == Form::kStudy;
  return fmt::format(
      "rule = \"microadam\"\ndensity = {}\nwindow = {}\nfeedback_bits = {}\nbucket = {}\n"
      "feedback_rounding = \"{}\"\nwindow_form = \"{}\"\n",
      variant.density, kWindow, variant.feedback_bits, study ? 4096 : 64,
      study ? "nearest" : "stochastic", kFormKeys.name(variant.form));
}

// Makes a panel for each form of MicroAdam that the study compares, with the same lines.
std::vector<StudyPanel> in_both_forms(const std::vector<StudyLine>& lines) {
  StudyPanel correct{"", "correct form", lines}, study{"", "the study's form", lines};
  for (StudyLine& line : study.lines) {
    if (line.variant.form != Form::kAdam) line.variant.form = Form::kStudy;
  }
  return {correct, study};
}

// Makes a figure whose panels come once for each data set.
StudyFigure on_both_data_sets(int number, std::string title, std::string question,
                              const std::vector<StudyPanel>& panels) {
  StudyFigure figure{number, std::move(title), std::move(question), {}};
  for (const char* data : {"iris", "wdbc"}) {
    for (const StudyPanel& panel : panels) {
      StudyPanel& added = figure.panels.emplace_back(panel);
      added.data = data;
      for (StudyLine& line : added.lines) line.variant.data = data;
    }
  }
  return figure;
}

StudyFigure falling_density() {
  std::vector<StudyLine> lines;
  for (const double density : {0.5, 0.2, 0.1, 0.05, 0.02, 0.01}) {
    lines.push_back({fmt::format("{:g} %", 100.0 * density),
                     static_cast<int>(lines.size()),
                     {.density = density, .feedback_bits = 4}});
  }
  return on_both_data_sets(
      5, "Falling density",
      "Ever smaller parts of the gradient, with a 4-bit error feedback. Every tensor keeps "
      "ceil(density × elements), and no tensor fewer than one.",
      in_both_forms(lines));
}

// The panel of Figure 9 whose variants have this density and error feedback.
StudyPanel fixed_batches(const std::string& subject, double density, int feedback_bits) {
  Variant variant{.density = density, .feedback_bits = feedback_bits, .reshuffled = false};
  Variant published = variant, study = variant, faster = variant;
  published.form = Form::kPublished;
  study.form = Form::kStudy;
  faster.rate_multiple = published_rate_multiple();
  return {
      "",
      subject,
      {{"correct form", 1, variant},
       {"published form", 3, published},
       {"the study's form", 2, study},
       {"correct form at " + significant(faster.rate_multiple, 2) + " times the rate", 4, faster}}};
}

}  // namespace

std::string variant_key(const Variant& variant) {
  std::string key = fmt::format("{}/{}", variant.data, kFormKeys.name(variant.form));
  if (variant.form != Form::kAdam) {
    key += fmt::format("/density={:g}%", 100.0 * variant.density);
    key += variant.feedback_bits == 0 ? std::string("/feedback=none")
                                      : fmt::format("/feedback={}bit", variant.feedback_bits);
  }
  if (!variant.standardized) key += "/raw";
  if (variant.rate_multiple != 1.0) key += fmt::format("/rate={:.3g}x", variant.rate_multiple);
  return variant.reshuffled ? key : key + "/fixed-batches";
}

double published_rate_multiple() {
  return (1.0 - std::pow(kBeta1, kWindow)) / std::sqrt(1.0 - std::pow(kBeta2, kWindow));
}

std::string study_model() { return "mlp:8:norm=none"; }

Recipe variant_recipe(const Variant& variant) {
  const std::string rule =
      variant.form == Form::kAdam ? std::string("rule = \"adamw\"\n") : microadam_keys(variant);
  const std::string update =
      fmt::format("{}lr = {}\nbeta1 = {}\nbeta2 = {}\neps = 1e-8\nschedule = \"constant\"\n", rule,
                  kRate * variant.rate_multiple, kBeta1, kBeta2);
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
  const std::string name = data == "iris" ? "Iris" : "Breast Cancer";
  return subject.empty() ? name : name + ", " + subject;
}

std::vector<StudyFigure> study_figures() {
  const Variant adam{.form = Form::kAdam}, raw_adam{.form = Form::kAdam, .standardized = false};
  const Variant micro{.density = kStudyDensity, .feedback_bits = 4};
  Variant published = micro, study = micro;
  published.form = Form::kPublished;
  study.form = Form::kStudy;
  const auto raw = [](int bits) {
    return Variant{.density = kStudyDensity, .feedback_bits = bits, .standardized = false};
  };
  return {
      on_both_data_sets(
          3, "Compression without error feedback",
          "MicroAdam with the whole gradient in every row of its window, with a tenth and with a "
          "hundredth of it. What is not kept is lost.",
          in_both_forms({{"no compression", 0, {}},
                         {"density 10 %", 1, {.density = 0.1}},
                         {"density 1 %", 2, {.density = 0.01}}})),
      on_both_data_sets(
          4, "Error feedback",
          "One hundredth of the gradient in every row, with a 4-bit error feedback and without, "
          "against the whole gradient.",
          in_both_forms({{"no compression", 0, {}},
                         {"1 %, 4-bit feedback", 3, micro},
                         {"1 %, no feedback", 2, {.density = kStudyDensity}}})),
      falling_density(),
      on_both_data_sets(6, "Adam and MicroAdam",
                        "The same betas (0.9, 0.999) and the same learning rate; MicroAdam keeps "
                        "1 % and has a 4-bit error feedback.",
                        {{"",
                          "",
                          {{"Adam", 0, adam},
                           {"MicroAdam, correct form", 1, micro},
                           {"MicroAdam, published form", 3, published},
                           {"MicroAdam, the study's form", 2, study}}}}),
      on_both_data_sets(
          7, "Data as they are",
          "Features in their own units: fractions beside hundreds. Density 1 %; the range of what "
          "the error feedback has to hold is that of the largest gradients.",
          in_both_forms({{"Adam", 0, raw_adam},
                         {"8-bit feedback", 1, raw(8)},
                         {"4-bit feedback", 3, raw(4)},
                         {"no feedback", 2, raw(0)}})),
      on_both_data_sets(
          9, "Where the oscillation comes from",
          "The study's loss oscillates, and it could not say why: in its code a gradient's weight "
          "depends on the step in which it was made. Here the same batches come in the same order "
          "in every epoch, so that such a weight meets the same rows again and again. The correct "
          "form stands beside the published one at the rate that its bias correction comes to.",
          {fixed_batches("no compression", 1.0, 0),
           fixed_batches("1 %, 4-bit feedback", kStudyDensity, 4)})};
}

std::string network_title(const std::string& data) {
  const Dataset dataset = builtin_dataset(data);
  return fmt::format("{}-8-{}", dataset.features, dataset.classes());
}

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
