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
                        percent(median(sample.values), 1),
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

std::string period_sentence(const std::string& what, const std::vector<PhaseRatio>& seeds) {
  std::vector<double> measured, noise;
  bool clear = !seeds.empty();
  for (const PhaseRatio& seed : seeds) {
    measured.push_back(seed.ratio);
    noise.push_back(seed.control);
    clear &= std::log(seed.ratio) > kAboveNoise * std::log(seed.control);
  }
  return fmt::format(
      "{} varies by a factor of {} with the step modulo ten, where noise gives {}: {}.", what,
      significant(median(measured), 3), significant(median(noise), 3),
      clear ? "a period of ten stands out" : "no period of ten stands out");
}

std::string beat_sentence(const std::string& what, const std::vector<Curve>& curves) {
  std::vector<double> correlations, noise;
  bool clear = !curves.empty();
  for (const Curve& curve : curves) {
    correlations.push_back(curve.numbers.beat_correlation);
    noise.push_back(curve.numbers.beat_noise);
    clear &= curve.numbers.beat_correlation > curve.numbers.beat_noise;
  }
  return fmt::format(
      "{}: autocorrelation {} above that of the lags beside it, where noise stays within {}: {}.",
      what, fixed(median(correlations), 2), fixed(median(noise), 2),
      clear ? "the period is there" : "no such period in every seed");
}

std::vector<std::string> period_claims(const StudyResults& results) {
  std::vector<std::string> claims;
  for (const std::string data : {"iris", "wdbc"}) {
    for (const Form form : {Form::kCorrected, Form::kStudy}) {
      const Variant variant{data, form, 0.01, 4};
      const std::string where = data_title(data) + ", " + form_name(form) + ": ";
      claims.push_back(period_sentence(where + "the difference of consecutive updates",
                                       ratios(results, variant, &CurveNumbers::turn)));
      claims.push_back(period_sentence(where + "the length of an update",
                                       ratios(results, variant, &CurveNumbers::length)));
      claims.push_back(period_sentence(where + "the loss of a step",
                                       ratios(results, variant, &CurveNumbers::loss)));
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
    for (const StudyLine& line : panel.lines) {
      const std::vector<Curve>& curves = results.of(line.variant);
      if (curves.empty()) continue;
      claims.push_back(beat_sentence(fmt::format("{}, {}, a period of {} epochs", panel.title(),
                                                 line.name, curves.front().numbers.beat),
                                     curves));
    }
  }
  return claims;
}

}  // namespace tritgrad
