#include "tools/study/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

// Medians closer than this are called the same.
constexpr double kSameWithin = 0.1;

bool is_same(double a, double b) { return std::abs(a - b) <= kSameWithin * std::abs(b); }

int count_higher(const Sample& a, const Sample& b) {
  int higher = 0;
  for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) {
    if (!std::isfinite(b.values[i])) continue;
    higher += !std::isfinite(a.values[i]) || a.values[i] > b.values[i] ? 1 : 0;
  }
  return higher;
}

// ", 2.5 times that", with no more digits than mean anything. What is not resolved is at most
// kResolvedLoss, and a ratio with it a bound.
std::string times_that(double ours, double theirs) {
  const bool ours_is_bound = ours <= kResolvedLoss, theirs_is_bound = theirs <= kResolvedLoss;
  if (ours_is_bound && theirs_is_bound) return "";
  const double ratio = ours / theirs;
  if (ratio > 1000.0) return ", more than 1000 times that";
  if (ratio < 0.001) return ", less than 0.001 times that";
  return fmt::format(", {}{} times that",
                     ours_is_bound     ? "less than "
                     : theirs_is_bound ? "more than "
                                       : "",
                     ratio_text(ratio));
}

// Tensors so small that two densities keep the same number of elements.
std::string equal_densities(const StudyPanel& panel) {
  std::string text;
  double last = 0.0;
  for (const StudyLine& line : panel.lines) {
    const double kept = kept_share(line.variant);
    text += fmt::format("{}{}{} {}{}", text.empty() ? "" : ", ", percent(kept, 1),
                        text.empty() ? " of the parameters at a density of" : " at", line.name,
                        kept == last ? " (no fewer)" : "");
    last = kept;
  }
  return fmt::format("In the {} network a row of the window really keeps {}.",
                     network_title(panel.data), text);
}

// Which forms have a loss that repeats itself with the step modulo ten, on some data set and
// density.
std::string repeating_forms(const StudyResults& results) {
  std::string repeating, others;
  for (const Form form : {Form::kCorrected, Form::kPublished, Form::kStudy}) {
    int periodic = 0, looked_at = 0;
    for (const StudyFigure& figure : results.figures) {
      for (const StudyPanel& panel : figure.panels) {
        for (const StudyLine& line : panel.lines) {
          const Variant& variant = line.variant;
          if (variant.reshuffled || variant.form != form || variant.rate != 1.0) continue;
          periodic += count_beats(results.of(variant)) == results.options.seeds ? 1 : 0;
          ++looked_at;
        }
      }
    }
    if (looked_at == 0) continue;
    std::string& list = periodic > 0 ? repeating : others;
    list += fmt::format("{}{}{} ({} of {} curves)", list.empty() ? "" : ", ",
                        form == Form::kStudy ? "" : "the ", form_name(form), periodic, looked_at);
  }
  return fmt::format(
      "With the same batches in every epoch the loss repeats itself with the period of "
      "the window, in every seed, in: {}; not in: {}.",
      repeating.empty() ? "none" : repeating, others.empty() ? "none" : others);
}

std::string milliseconds(const CostPoint& point) {
  return fmt::format("{} ms ({} to {})", significant(1e3 * point.seconds_per_step, 3),
                     significant(1e3 * point.lower_quartile, 3),
                     significant(1e3 * point.upper_quartile, 3));
}

std::string time_clause(const CostPoint& micro, const CostPoint& adam) {
  const bool apart =
      micro.lower_quartile > adam.upper_quartile || micro.upper_quartile < adam.lower_quartile;
  return fmt::format(
      "a step takes {} against {}, {}.", milliseconds(micro), milliseconds(adam),
      apart ? significant(micro.seconds_per_step / adam.seconds_per_step, 3) + " times as long"
            : std::string("which does not tell them apart"));
}

std::string ledger_sentence(const CostPoint& micro, const CostPoint& adam) {
  const bool counted =
      adam.state_bytes == adam.ledger_bytes && micro.state_bytes == micro.ledger_bytes;
  return counted ? "The bytes are those that the ledger counted."
                 : fmt::format("The ledger counted {} and {} bytes instead.", adam.ledger_bytes,
                               micro.ledger_bytes);
}

}  // namespace

int count_beats(const std::vector<Curve>& curves) {
  return static_cast<int>(std::count_if(curves.begin(), curves.end(), [](const Curve& curve) {
    return curve.numbers.beat_correlation > curve.numbers.beat_noise;
  }));
}

std::string of_seeds(int count, std::size_t seeds) {
  return fmt::format("in {} of {} seed{}", count, seeds, seeds == 1 ? "" : "s");
}

Sample end_sample(const StudyLine& line, const StudyResults& results) {
  return {line.name, results.numbers(line.variant, [](const CurveNumbers& n) {
            return std::isnan(n.end_loss) ? n.end_loss : std::max(n.end_loss, kResolvedLoss);
          })};
}

Sample roughness_sample(const StudyLine& line, const StudyResults& results) {
  return {line.name, results.numbers(line.variant, [](const CurveNumbers& n) {
            return std::expm1(n.roughness);
          })};
}

std::string loss_text(double loss) {
  if (loss <= kResolvedLoss) return fmt::format("less than {:.0e}", kResolvedLoss);
  return loss < 1e-3 ? fmt::format("{:.1e}", loss) : significant(loss, 3);
}

std::string share_text(double share) { return significant(100.0 * share, 3) + " %"; }

std::string ratio_text(double ratio) {
  const double off = std::abs(ratio - 1.0);
  if (off > 0.5) return significant(ratio, 2);
  int decimals = 2;
  for (; decimals < 6; ++decimals) {
    const double power = std::pow(10.0, decimals);
    if (is_same(std::round(ratio * power) / power, 1.0) == is_same(ratio, 1.0)) break;
  }
  return fixed(ratio, decimals);
}

std::string sample_text(const std::vector<double>& values) {
  const std::string middle = significant(median(values), 3);
  if (values.size() < 2) return middle;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} ({} to {})", middle, significant(*low, 3), significant(*high, 3));
}

Verdict compare_samples(const Sample& a, const Sample& b) {
  const double ours = median(a.values), theirs = median(b.values);
  if (std::isfinite(ours) && std::isfinite(theirs) && is_same(ours, theirs)) {
    return Verdict::kUnclear;
  }
  const auto seeds = static_cast<int>(a.values.size());
  if (count_higher(a, b) == seeds) return Verdict::kHigher;
  return count_higher(b, a) == seeds ? Verdict::kLower : Verdict::kUnclear;
}

std::string comparison(const Sample& a, const Sample& b, const std::string& if_lower,
                       const std::string& if_higher) {
  const double ours = median(a.values), theirs = median(b.values);
  const Verdict verdict = compare_samples(a, b);
  return ratio_text(ours / theirs) + " times, " +
         (verdict == Verdict::kLower    ? if_lower + " in every seed"
          : verdict == Verdict::kHigher ? if_higher + " in every seed"
          : is_same(ours, theirs)       ? "about the same"
                                        : "no clear difference");
}

std::string end_phrase(const Sample& sample, const Sample& reference) {
  const double ours = median(sample.values), theirs = median(reference.values);
  if (!std::isfinite(ours)) return sample.name + " does not stay finite";
  std::string text = fmt::format("{} at {}", sample.name, loss_text(ours));
  if (!std::isfinite(theirs) || theirs <= 0.0) return text;
  text += times_that(ours, theirs) + ": ";
  const int seeds = static_cast<int>(sample.values.size());
  switch (compare_samples(sample, reference)) {
    case Verdict::kHigher:
      return text + "worse " + of_seeds(seeds, sample.values.size());
    case Verdict::kLower:
      return text + "better " + of_seeds(seeds, sample.values.size());
    case Verdict::kUnclear:
      return text + fmt::format("{}, higher {}",
                                is_same(ours, theirs) ? "about the same" : "no clear difference",
                                of_seeds(count_higher(sample, reference), sample.values.size()));
  }
  return text;
}

std::string end_sentence(const StudyPanel& panel, const StudyResults& results) {
  const Sample reference = end_sample(panel.lines.front(), results);
  const double loss = median(reference.values);
  std::string text = panel.title() + ": " + reference.name;
  text += std::isfinite(loss) ? fmt::format(" ends at a loss of {}", loss_text(loss))
                              : std::string(" does not stay finite");
  for (std::size_t i = 1; i < panel.lines.size(); ++i) {
    text += "; " + end_phrase(end_sample(panel.lines[i], results), reference);
  }
  return text + ".";
}

std::string onset_sentence(const StudyPanel& panel, const StudyResults& results) {
  const Sample reference = end_sample(panel.lines.front(), results);
  std::string text = fmt::format("{}: {} ends at a loss of {}, {}", panel.title(), reference.name,
                                 loss_text(median(reference.values)), panel.lines.back().name);
  text +=
      fmt::format(" at {}; ", loss_text(median(end_sample(panel.lines.back(), results).values)));
  for (const StudyLine& line : panel.lines) {
    const Sample sample = end_sample(line, results);
    if (compare_samples(sample, reference) != Verdict::kHigher) continue;
    return text +
           fmt::format("{} is the first density that is worse in every seed{} of {}.", sample.name,
                       times_that(median(sample.values), median(reference.values)), reference.name);
  }
  return text + "no density is worse in every seed.";
}

std::string roughness_sentence(const StudyPanel& panel, const StudyPanel& other,
                               const StudyResults& results) {
  std::string text =
      fmt::format("{}, distance of an epoch's loss from those around it, {} against {}: ",
                  data_title(panel.data), panel.form, other.form);
  for (std::size_t i = 0; i < panel.lines.size(); ++i) {
    if (variant_key(panel.lines[i].variant) == variant_key(other.lines[i].variant)) continue;
    const Sample ours = roughness_sample(panel.lines[i], results);
    const Sample theirs = roughness_sample(other.lines[i], results);
    text += fmt::format("{}, {} against {} ({}); ", ours.name, share_text(median(ours.values)),
                        share_text(median(theirs.values)),
                        comparison(ours, theirs, "calmer", "rougher"));
  }
  text.resize(text.size() - 2);
  return text + ".";
}

std::string bucket_sentence(const StudyResults& results) {
  BucketCount sum, most;
  std::string where;
  for (const Variant& variant : all_variants(results.figures)) {
    int seed = 0;
    for (const Curve& curve : results.of(variant)) {
      const BucketCount& count = curve.numbers.buckets;
      ++seed;
      sum.buckets += count.buckets;
      sum.zero_at_start += count.zero_at_start;
      sum.written += count.written;
      sum.constant += count.constant;
      sum.zero += count.zero;
      if (count.constant <= most.constant) continue;
      most = count;
      where = fmt::format("seed {} of {}", seed, variant_key(variant));
    }
  }
  return fmt::format(
      "A bucket whose numbers are all equal (Delta = delta) has no range to divide by: its codes "
      "are 0, and it is decoded to delta exactly. {} of the {} buckets of all runs are so at 0 "
      "before the first step, which is fed nothing back; of the {} that steps wrote {} are, {} of "
      "them at 0{}.",
      sum.zero_at_start, sum.buckets, human_count(static_cast<double>(sum.written)), sum.constant,
      sum.zero,
      where.empty() ? ""
                    : fmt::format("; most, {} of {}, in {}", most.constant, most.written, where));
}

std::vector<std::string> figure_claims(const StudyFigure& figure, const StudyResults& results) {
  const bool densities = figure.number == 5;
  std::vector<std::string> claims;
  for (const StudyPanel& panel : figure.panels) {
    claims.push_back(densities ? onset_sentence(panel, results) : end_sentence(panel, results));
  }
  for (std::size_t i = 0; i + 1 < figure.panels.size(); i += 2) {
    StudyPanel panel = figure.panels[i], other = figure.panels[i + 1];
    if (panel.data != other.data) continue;
    if (densities) claims.push_back(equal_densities(panel));
    if (densities) {  // the ends are enough: the picture has the rest
      for (StudyPanel* each : {&panel, &other}) {
        each->lines = {each->lines.front(), each->lines.back()};
      }
    }
    claims.push_back(roughness_sentence(panel, other, results));
  }
  if (figure.number == 4) claims.push_back(bucket_sentence(results));
  return claims;
}

std::vector<std::string> cost_claims(const std::vector<CostPoint>& costs) {
  std::vector<std::string> claims;
  for (std::size_t i = 0; i + 1 < costs.size(); i += 2) {
    const CostPoint& adam = costs[i];
    const CostPoint& micro = costs[i + 1];
    claims.push_back(fmt::format(
        "{} parameters: {} holds {} bytes of state per parameter, {} {}, {} times less; {} {}",
        human_count(static_cast<double>(adam.parameters)), adam.rule,
        fixed(adam.bytes_per_parameter(), 2), micro.rule, fixed(micro.bytes_per_parameter(), 2),
        significant(adam.bytes_per_parameter() / micro.bytes_per_parameter(), 3),
        time_clause(micro, adam), ledger_sentence(micro, adam)));
  }
  return claims;
}

std::string study_headline(const StudyResults& results) {
  std::string text;
  for (const std::string data : {"iris", "wdbc"}) {
    const auto loss = [&](Form form) {
      const bool adam = form == Form::kAdam;
      const StudyLine line{"", 0, {data, form, adam ? 1.0 : 0.01, adam ? 0 : 4}};
      return loss_text(median(end_sample(line, results).values));
    };
    text += fmt::format(
        "{}: Adam ends at a training loss of {}, MicroAdam with 1 % of the gradient and a 4-bit "
        "error feedback at {} in its correct form, {} as published and {} as in the study's code. ",
        data_title(data), loss(Form::kAdam), loss(Form::kCorrected), loss(Form::kPublished),
        loss(Form::kStudy));
  }
  if (results.options.epochs >= kEpochsToJudge) text += repeating_forms(results) + " ";
  if (results.costs.size() >= 2) {
    const CostPoint& adam = results.costs[results.costs.size() - 2];
    const CostPoint& micro = results.costs.back();
    text +=
        fmt::format("With {} parameters MicroAdam holds {} bytes of state for each instead of {}.",
                    human_count(static_cast<double>(micro.parameters)),
                    fixed(micro.bytes_per_parameter(), 2), fixed(adam.bytes_per_parameter(), 2));
  }
  return text;
}

}  // namespace tritgrad
