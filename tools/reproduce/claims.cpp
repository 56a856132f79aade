#include "tools/reproduce/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/numbers.h"

namespace tritgrad {
namespace {

// Medians closer than this are called the same.
constexpr double kSameWithin = 0.1;
// A period counts when its logarithm exceeds that of noise by this factor in every seed.
constexpr double kAboveNoise = 1.5;

int count_higher(const Sample& a, const Sample& b) {
  int higher = 0;
  for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) {
    higher += !std::isfinite(a.values[i]) || a.values[i] > b.values[i] ? 1 : 0;
  }
  return higher;
}

std::string of_seeds(int count, std::size_t seeds) {
  return seeds == 1 ? std::string("in the one seed")
                    : fmt::format("in {} of {} seeds", count, seeds);
}

Sample end_losses(const StudyLine& line, const StudyResults& results) {
  return {line.name,
          results.numbers(line.variant, [](const CurveNumbers& n) { return n.end_loss; })};
}

// Mean change from epoch to epoch, as a share.
Sample changes(const StudyLine& line, const StudyResults& results) {
  return {line.name, results.numbers(line.variant, [](const CurveNumbers& n) {
            return std::expm1(n.roughness);
          })};
}

std::vector<PhaseRatio> ratios(const StudyResults& results, const Variant& variant,
                               PhaseRatio CurveNumbers::*which) {
  std::vector<PhaseRatio> values;
  for (const Curve& curve : results.of(variant)) values.push_back(curve.numbers.*which);
  return values;
}

// Tensors so small that two densities keep the same number of elements.
std::string equal_densities(const StudyPanel& panel) {
  std::string text;
  double last = 0.0;
  for (const StudyLine& line : panel.lines) {
    const double kept = kept_share(line.variant);
    text += fmt::format("{}{} of the parameters at {}{}", text.empty() ? "" : ", ",
                        percent(kept, 1), line.name, kept == last ? " (no fewer)" : "");
    last = kept;
  }
  return fmt::format("In the {} network a row of the window really keeps {}.",
                     network_title(panel.data), text);
}

std::vector<double> turn_ratios(const StudyResults& results, const Variant& variant) {
  return results.numbers(variant, [](const CurveNumbers& n) { return n.turn.ratio; });
}

}  // namespace

std::string sample_text(const std::vector<double>& values) {
  const std::string middle = significant(median(values), 3);
  if (values.size() < 2) return middle;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} ({} to {})", middle, significant(*low, 3), significant(*high, 3));
}

Verdict compare_samples(const Sample& a, const Sample& b) {
  const double ours = median(a.values), theirs = median(b.values);
  if (!std::isfinite(ours) || !std::isfinite(theirs)) {
    if (std::isfinite(ours)) return Verdict::kLower;
    return std::isfinite(theirs) ? Verdict::kHigher : Verdict::kUnclear;
  }
  if (std::abs(ours - theirs) <= kSameWithin * std::abs(theirs)) return Verdict::kUnclear;
  const int higher = count_higher(a, b);
  if (higher == static_cast<int>(a.values.size())) return Verdict::kHigher;
  return higher == 0 ? Verdict::kLower : Verdict::kUnclear;
}

std::string end_phrase(const Sample& sample, const Sample& reference) {
  const double ours = median(sample.values), theirs = median(reference.values);
  if (!std::isfinite(ours)) return sample.name + " does not stay finite";
  std::string text = fmt::format("{} ends at {}", sample.name, significant(ours, 3));
  if (!std::isfinite(theirs) || theirs <= 0.0) return text;
  text += fmt::format(", {} times that of {}: ", significant(ours / theirs, 2), reference.name);
  const int seeds = static_cast<int>(sample.values.size());
  switch (compare_samples(sample, reference)) {
    case Verdict::kHigher:
      return text + "worse " + of_seeds(seeds, sample.values.size());
    case Verdict::kLower:
      return text + "better " + of_seeds(seeds, sample.values.size());
    case Verdict::kUnclear:
      return text + fmt::format("no clear difference, higher {}",
                                of_seeds(count_higher(sample, reference), sample.values.size()));
  }
  return text;
}

std::string end_sentence(const StudyPanel& panel, const StudyResults& results) {
  const Sample reference = end_losses(panel.lines.front(), results);
  const double loss = median(reference.values);
  std::string text = panel.title() + ": " + reference.name;
  text += std::isfinite(loss) ? fmt::format(" ends at a loss of {}", significant(loss, 3))
                              : std::string(" does not stay finite");
  for (std::size_t i = 1; i < panel.lines.size(); ++i) {
    text += "; " + end_phrase(end_losses(panel.lines[i], results), reference);
  }
  return text + ".";
}

std::string roughness_sentence(const StudyPanel& panel, const StudyPanel& other,
                               const StudyResults& results) {
  std::string text = data_title(panel.data) +
                     ", change of the loss from one epoch to the next in the second half, " +
                     panel.form + " against " + other.form + ": ";
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    const Sample ours = changes(panel.lines[i], results);
    const Sample theirs = changes(other.lines[i], results);
    if (variant_key(panel.lines[i].variant) == variant_key(other.lines[i].variant)) continue;
    const Verdict verdict = compare_samples(ours, theirs);
    text += fmt::format("{} {} against {} ({}); ", ours.name, percent(median(ours.values), 1),
                        percent(median(theirs.values), 1),
                        verdict == Verdict::kLower    ? "calmer in all seeds"
                        : verdict == Verdict::kHigher ? "rougher in all seeds"
                                                      : "no clear difference");
  }
  text.resize(text.size() - 2);
  return text + ".";
}

std::string period_sentence(const std::string& what, const std::vector<PhaseRatio>& seeds) {
  std::vector<double> measured, noise;
  bool clear = !seeds.empty();
  for (const PhaseRatio& seed : seeds) {
    measured.push_back(seed.ratio);
    noise.push_back(seed.control);
    clear &= std::log(seed.ratio) > kAboveNoise * std::log(seed.control);
  }
  return fmt::format(
      "{} varies by a factor of {} with the step modulo ten; periods 7, 9, 11 and 13 "
      "give {}, so a period of ten {}.",
      what, significant(median(measured), 3), significant(median(noise), 3),
      clear ? "stands out" : "does not stand out");
}

std::vector<std::string> figure_claims(const StudyFigure& figure, const StudyResults& results) {
  std::vector<std::string> claims;
  for (const StudyPanel& panel : figure.panels) claims.push_back(end_sentence(panel, results));
  for (std::size_t i = 0; i + 1 < figure.panels.size(); i += 2) {
    const StudyPanel& panel = figure.panels[i];
    const StudyPanel& other = figure.panels[i + 1];
    if (panel.data != other.data) continue;
    claims.push_back(roughness_sentence(panel, other, results));
    if (figure.number == 5) claims.push_back(equal_densities(panel));
  }
  return claims;
}

std::vector<std::string> period_claims(const StudyResults& results) {
  std::vector<std::string> claims;
  for (const std::string data : {"iris", "wdbc"}) {
    for (const Form form : {Form::kCorrected, Form::kStudy}) {
      const Variant variant{data, form, 0.01, 4};
      const std::string where =
          fmt::format("{}, {}, 1 %, 4-bit feedback: ", data_title(data), form_name(form));
      claims.push_back(period_sentence(where + "the difference of two consecutive updates",
                                       ratios(results, variant, &CurveNumbers::turn)));
      claims.push_back(period_sentence(where + "the length of the update",
                                       ratios(results, variant, &CurveNumbers::length)));
      claims.push_back(period_sentence(where + "the loss of a step",
                                       ratios(results, variant, &CurveNumbers::loss)));
    }
  }
  return claims;
}

std::vector<std::string> cost_claims(const std::vector<CostPoint>& costs) {
  std::vector<std::string> claims;
  for (std::size_t i = 0; i + 1 < costs.size(); i += 2) {
    const CostPoint& adam = costs[i];
    const CostPoint& micro = costs[i + 1];
    const bool counted =
        adam.state_bytes == adam.ledger_bytes && micro.state_bytes == micro.ledger_bytes;
    claims.push_back(fmt::format(
        "{} parameters: {} holds {} bytes of state per parameter, {} {}, {} times less; a step "
        "takes "
        "{} ms against {} ms, {} times as long. {}",
        human_count(static_cast<double>(adam.parameters)), adam.rule,
        fixed(adam.bytes_per_parameter(), 2), micro.rule, fixed(micro.bytes_per_parameter(), 2),
        significant(adam.bytes_per_parameter() / micro.bytes_per_parameter(), 3),
        significant(1e3 * micro.seconds_per_step, 3), significant(1e3 * adam.seconds_per_step, 3),
        significant(micro.seconds_per_step / adam.seconds_per_step, 3),
        counted ? "The bytes are those that the ledger counted."
                : fmt::format("The ledger counted {} and {} bytes instead.", adam.ledger_bytes,
                              micro.ledger_bytes)));
  }
  return claims;
}

std::string study_headline(const StudyResults& results) {
  std::string text;
  for (const std::string data : {"iris", "wdbc"}) {
    const auto loss = [&](Form form) {
      const Variant variant =
          form == Form::kAdam ? Variant{data, form, 1.0, 0} : Variant{data, form, 0.01, 4};
      return significant(
          median(results.numbers(variant, [](const CurveNumbers& n) { return n.end_loss; })), 3);
    };
    text += fmt::format(
        "{}: Adam ends at a loss of {}, MicroAdam with 1 % of the gradient and a 4-bit error "
        "feedback "
        "at {} in the correct form and at {} in the study's. ",
        data_title(data), loss(Form::kAdam), loss(Form::kCorrected), loss(Form::kStudy));
  }
  const Variant correct{"wdbc", Form::kCorrected, 0.01, 4}, study{"wdbc", Form::kStudy, 0.01, 4};
  return text + fmt::format(
                    "The difference between consecutive updates swings by a factor of {} with "
                    "the step modulo ten in the study's form, {} in the correct one "
                    "(Breast Cancer).",
                    significant(median(turn_ratios(results, study)), 3),
                    significant(median(turn_ratios(results, correct)), 3));
}

}  // namespace tritgrad
