#include "tools/study/variant.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/data/open_dataset.h"
#include "models/networks/model.h"

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

}  // namespace tritgrad
