#include "tools/study/tremor.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/report/number_text.h"
#include "tools/study/claims.h"

namespace tritgrad {
namespace {

// A period counts when its logarithm exceeds that of noise by this factor.
constexpr double kAboveNoise = 1.5;

bool has_period(const PhaseRatio& seed) {
  return std::log(seed.ratio) > kAboveNoise * std::log(seed.control);
}

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
    text += " (" + comparison(sample, first, "less", "more") + ")";
  }
  return text + ".";
}

}  // namespace

std::string period_phrase(const std::string& what, const std::vector<PhaseRatio>& seeds) {
  std::vector<double> measured, noise;
  int periodic = 0;
  for (const PhaseRatio& seed : seeds) {
    measured.push_back(seed.ratio);
    noise.push_back(seed.control);
    periodic += has_period(seed) ? 1 : 0;
  }
  return fmt::format("{} by a factor of {} (noise {}: a period of ten {})", what,
                     fixed(median(measured), 2), fixed(median(noise), 2),
                     of_seeds(periodic, seeds.size()));
}

std::string beat_phrase(const std::string& what, const std::vector<Curve>& curves) {
  std::vector<double> correlations, noise;
  for (const Curve& curve : curves) {
    correlations.push_back(curve.numbers.beat_correlation);
    noise.push_back(curve.numbers.beat_noise);
  }
  return fmt::format("{} {} (noise up to {}: the period is there {})", what,
                     signed_fixed(median(correlations), 2), fixed(median(noise), 2),
                     of_seeds(count_beats(curves), curves.size()));
}

std::vector<std::string> published_claims(const StudyFigure& figure, const StudyResults& results) {
  std::vector<std::string> claims;
  for (const StudyPanel& panel : figure.panels) {
    const StudyLine &correct = panel.lines.at(0), &published = panel.lines.at(1),
                    &faster = panel.lines.at(3);
    const auto length = [&](const StudyLine& line) {
      return median(
          results.numbers(line.variant, [](const CurveNumbers& n) { return n.update_length; }));
    };
    const auto trembles = [](const Sample& sample) {
      std::vector<double> percents;
      for (const double value : sample.values) percents.push_back(100.0 * value);
      return sample_text(percents) + " %";
    };
    const Sample ours = roughness_sample(published, results);
    const Sample control = roughness_sample(faster, results);
    const std::vector<Curve>& curves = results.of(published.variant);
    claims.push_back(fmt::format(
        "{}: the published form trembles by {}, with the period of the window {}. Its updates are "
        "{} times as long as those of the correct form, which trembles by {}. With {} times the "
        "learning rate the correct form trembles by {}; against the published form {}.",
        panel.title(), trembles(ours), of_seeds(count_beats(curves), curves.size()),
        ratio_text(length(published) / length(correct)),
        trembles(roughness_sample(correct, results)), significant(faster.variant.rate, 2),
        trembles(control), comparison(control, ours, "less", "more")));
  }
  return claims;
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
