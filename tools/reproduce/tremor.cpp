#include "tools/reproduce/tremor.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/numbers.h"
#include "tools/reproduce/claims.h"

namespace tritgrad {
namespace {

// A period counts when its logarithm exceeds that of noise by this factor in every seed.
constexpr double kAboveNoise = 1.5;

std::vector<PhaseRatio> ratios(const StudyResults& results, const Variant& variant,
                               PhaseRatio CurveNumbers::*which) {
  std::vector<PhaseRatio> values;
  for (const Curve& curve : results.of(variant)) values.push_back(curve.numbers.*which);
  return values;
}

// "Iris, no compression: the loss trembles by 0.4 % in the correct form, by ..."
std::string strength_sentence(const std::string& where, const std::vector<StudyLine>& lines,
                              const StudyResults& results) {
  std::string text = where + ": an epoch's loss is off the mean of those around it by";
  Sample first;
  for (const StudyLine& line : lines) {
    const Sample sample = roughness_sample(line, results);
    text += fmt::format("{} {} in {}{}", first.values.empty() ? "" : ",",
                        share_text(median(sample.values)),
                        sample.name.starts_with("the") ? "" : "the ", sample.name);
    if (first.values.empty()) {
      first = sample;
      continue;
    }
    const Verdict verdict = compare_samples(sample, first);
    text += verdict == Verdict::kHigher  ? " (more in every seed)"
            : verdict == Verdict::kLower ? " (less in every seed)"
                                         : " (no clear difference)";
  }
  return text + ".";
}

}  // namespace

std::string period_phrase(const std::string& what, const std::vector<PhaseRatio>& seeds) {
  std::vector<double> measured, noise;
  bool clear = !seeds.empty();
  for (const PhaseRatio& seed : seeds) {
    measured.push_back(seed.ratio);
    noise.push_back(seed.control);
    clear &= std::log(seed.ratio) > kAboveNoise * std::log(seed.control);
  }
  return fmt::format("{} by a factor of {} (noise {}: {})", what, fixed(median(measured), 2),
                     fixed(median(noise), 2), clear ? "a period of ten" : "no period of ten");
}

std::string beat_phrase(const std::string& what, const std::vector<Curve>& curves) {
  std::vector<double> correlations, noise;
  for (const Curve& curve : curves) {
    correlations.push_back(curve.numbers.beat_correlation);
    noise.push_back(curve.numbers.beat_noise);
  }
  return fmt::format("{} {} (noise up to {}: {})", what, signed_fixed(median(correlations), 2),
                     fixed(median(noise), 2),
                     has_beat(curves) ? "the period is there" : "not in every seed");
}

std::vector<std::string> period_claims(const StudyResults& results) {
  std::vector<std::string> claims;
  for (const std::string data : {"iris", "wdbc"}) {
    for (const Form form : {Form::kCorrected, Form::kStudy}) {
      const Variant variant{data, form, 0.01, 4};
      claims.push_back(fmt::format(
          "{}, {}: with the step modulo ten {}, {}, {}.", data_title(data), form_name(form),
          period_phrase("the difference of consecutive updates varies",
                        ratios(results, variant, &CurveNumbers::turn)),
          period_phrase("the length of an update", ratios(results, variant, &CurveNumbers::length)),
          period_phrase("the loss of a step", ratios(results, variant, &CurveNumbers::loss))));
    }
  }
  return claims;
}

std::vector<std::string> tremor_claims(const StudyFigure& figure, const StudyResults& results) {
  std::vector<std::string> claims;
  for (const StudyPanel& panel : figure.panels) {
    claims.push_back(strength_sentence(panel.title(), panel.lines, results));
  }
  for (const StudyPanel& panel : figure.panels) {
    const std::int64_t beat = results.of(panel.lines.front().variant).front().numbers.beat;
    std::string text = fmt::format(
        "{}: steps modulo ten come round with the epochs every {} epochs. Autocorrelation of the "
        "loss at multiples of that less that at other lags:",
        panel.title(), beat);
    for (const StudyLine& line : panel.lines) {
      text += " " + beat_phrase(line.name, results.of(line.variant)) + ",";
    }
    text.back() = '.';
    claims.push_back(text);
  }
  return claims;
}

}  // namespace tritgrad
