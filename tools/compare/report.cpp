#include "tools/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "engine/text.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

// A few bytes less are no saving that anybody would give up quality for.
constexpr double kSmallerRatio = 0.9;
// A loss of so many points of accuracy, or of such a share of the baseline's error, is what an
// interval has to rule out (a margin of non-inferiority): that no loss was found would speak for
// the recipes with the widest intervals.
constexpr double kLossOfPoints = 0.5;
constexpr double kLossOfError = 0.01;

double loss_margin(const RecipeSummary& baseline) {
  return baseline.unit.metric == Metric::kAccuracy ? kLossOfPoints
                                                   : kLossOfError * baseline.score->mean;
}

// Whether the interval of the difference to the baseline holds no loss of the margin.
bool rules_out_loss(const RecipeSummary& summary, const RecipeSummary& baseline) {
  if (!summary.delta_interval) return false;
  const Interval& interval = *summary.delta_interval;
  const double worst = higher_is_better(summary.unit.metric) ? interval.low : -interval.high;
  return worst > -loss_margin(baseline);
}

// "rules out a loss of 0.5 points against master".
std::string margin_text(const RecipeSummary& baseline) {
  return baseline.unit.metric == Metric::kAccuracy
             ? fmt::format("rules out a loss of {} points against {}", fixed(kLossOfPoints, 1),
                           baseline.recipe)
             : fmt::format("rules out {} {} % above that of {}",
                           baseline.unit.metric == Metric::kRmse ? "an RMSE" : "bits a byte",
                           fixed(100.0 * kLossOfError, 0), baseline.recipe);
}

// The metrics of all records of a page; accuracy where nothing was run.
std::set<Metric> metrics_of(const std::vector<ComparisonRecord>& records) {
  std::set<Metric> metrics;
  for (const ComparisonRecord& record : records) {
    metrics.insert(record.runs.empty() ? Metric::kAccuracy : record.runs.front().metric);
  }
  if (metrics.empty()) metrics.insert(Metric::kAccuracy);
  return metrics;
}

// The names that fit all records of a page.
ScoreNames names_of(const std::vector<ComparisonRecord>& records) {
  const std::set<Metric> metrics = metrics_of(records);
  ScoreNames names;
  for (const Metric metric : metrics) {
    const bool first = metric == *metrics.begin();
    const bool accuracy = metric == Metric::kAccuracy, rmse = metric == Metric::kRmse;
    names.score += (first ? "" : " or ") + std::string(to_text(metric)) + (accuracy ? " %" : "");
    names.difference += first ? "" : ", or ";
    names.difference += accuracy ? "points of accuracy"
                        : rmse   ? "RMSE in the units of the label"
                                 : "bits for each byte";
  }
  return names;
}

// The baseline of all records; empty where they have different ones.
std::string common_baseline(const std::vector<ComparisonRecord>& records) {
  const auto differs = [&](const ComparisonRecord& record) {
    return record.baseline != records.front().baseline;
  };
  const bool is_common = !records.empty() && std::none_of(records.begin(), records.end(), differs);
  return is_common ? records.front().baseline : "";
}

// "3 seeds", or "1 of 3 seeds, as the others diverged".
std::string seeds_of(const RecipeSummary& summary) {
  const std::string all = counted(summary.seeds, "seed");
  return summary.diverged == 0 ? all
                               : fmt::format("{} of {}, as the others diverged",
                                             summary.seeds - summary.diverged, all);
}

// Explains the columns that some table has.
Facts definitions_of(const std::vector<ComparisonRecord>& records) {
  const std::string common = common_baseline(records);
  const std::string base = common.empty() ? "the baseline" : common;
  std::vector<Comparison> comparisons;
  for (const ComparisonRecord& record : records) comparisons.push_back(compare(record));
  const auto is_somewhere = [&](const SummaryColumn& column) {
    return std::any_of(comparisons.begin(), comparisons.end(),
                       [&](const Comparison& each) { return is_shown(column, each); });
  };
  const ScoreNames names = names_of(records);
  Facts facts;
  facts.glossary = true;
  for (const SummaryColumn& column : summary_columns()) {
    if (column.meaning.empty() || (column.only_if_known && !is_somewhere(column))) continue;
    facts.entries.emplace_back(with_names(column.heading, base, names),
                               with_names(column.meaning, base, names));
  }
  const auto is_beside_others = [](const ComparisonRecord& record) {
    return !record.published.empty();
  };
  if (std::any_of(records.begin(), records.end(), is_beside_others)) {
    facts.entries.emplace_back("published",
                               "What others report of this network, or of the one named, under the "
                               "protocol below the table; nothing of it was measured here. Scores "
                               "of recipes are read once, after the last epoch.");
  }
  facts.entries.emplace_back("SHA-256 of the weights",
                             "The same command on the same data and instruction set gives the same "
                             "weights, whatever the number of threads.");
  return facts;
}

// What the page answers.
std::string question_of(const std::vector<ComparisonRecord>& records) {
  const bool texts = metrics_of(records) == std::set{Metric::kBitsPerByte};
  return fmt::format(
      "How {} that each recipe trains{}, and how many bytes does each of their "
      "trained parameters take meanwhile?",
      texts ? "well do language models" : "accurate are networks",
      texts ? " tell the next token" : "");
}

std::string title_of(const ComparisonRecord& record) {
  return record.title.empty() ? fmt::format("{} on {}", record.model, record.data) : record.title;
}

// "2-mnist-": names of files hold nothing that a shell or a link would stumble over.
std::string picture_prefix(const ComparisonRecord& record, std::size_t number) {
  std::string name;
  for (const char c : record.data) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return fmt::format("{}-{}-", number, name);
}

std::string model_line(const ComparisonRecord& record) {
  if (record.runs.empty()) return record.model;
  const RunResult& run = record.runs.front();
  const std::string labels = label_words(run), pixels = pixel_words(run);
  const std::string resized =
      run.resize == 0 ? "" : fmt::format(", images made smaller, {0} x {0} pixels", run.resize);
  return fmt::format("{}, {} parameters, {} in batches of {}{}{}{}{}", run.model,
                     human_count(static_cast<double>(run.parameters)), counted(run.epochs, "epoch"),
                     run.batch, resized,
                     run.augment.empty() ? "" : ", images augmented by " + run.augment,
                     labels.empty() ? ", labels not smoothed" : ", " + labels,
                     pixels.empty() ? "" : ", " + pixels);
}

std::string time_line(const ComparisonRecord& record) {
  std::size_t trials = 0;
  for (const Tuning& tuning : record.tunings) trials += tuning.candidates.size();
  return fmt::format(
      "{} for {}{}", duration(record.seconds()),
      counted(static_cast<std::int64_t>(record.runs.size() + trials), "run"),
      trials > 0 ? fmt::format(", {} of them to choose learning rates", trials) : "");
}

// "one (3 runs); another (1 run)": the machines of the runs; empty where all were made on that of
// the report.
std::string machines_of_runs(const Report& report) {
  std::map<std::string, std::int64_t> counts;
  const auto count = [&](const std::string& machine) {
    if (!machine.empty()) ++counts[machine];
  };
  for (const ComparisonRecord& record : report.records) {
    for (const RunResult& run : record.runs) count(run.machine);
    for (const Tuning& tuning : record.tunings) {
      for (const TuningCandidate& candidate : tuning.candidates) count(candidate.machine);
    }
  }
  if (counts.empty() || (counts.size() == 1 && counts.contains(report.machine))) return "";
  std::string text;
  for (const auto& [machine, runs] : counts) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", machine, counted(runs, "run"));
  }
  return text;
}

void add_record(Page& page, const ComparisonRecord& record, std::size_t number) {
  const Comparison comparison = compare(record);
  const auto add = [&](PageBlock block) { page.blocks.push_back(std::move(block)); };
  add(Heading{2, title_of(record)});
  add(Paragraph{conclusion(comparison), true});
  add(Facts{
      {{"Data", record.dataset}, {"Model", model_line(record)}, {"Time", time_line(record)}}});
  if (record.runs.empty()) return;
  add(Bullets{differences(comparison)});
  add(summary_table(comparison, kScoreTable));
  for (const std::string& note : footnotes(comparison)) add(Paragraph{note});
  add(Pictures{draw_charts(record, comparison, picture_prefix(record, number))});
  add(Heading{3, "Bytes per parameter"});
  add(summary_table(comparison, kBytesTable));
  if (!record.tunings.empty()) {
    add(Heading{3, "Learning rates"});
    add(tuning_table(record));
  }
  add(Heading{3, "How to repeat"});
  add(Code{record.command});
  add(runs_table(record));
}

}  // namespace

std::string conclusion(const Comparison& comparison) {
  if (comparison.recipes.empty()) return "No runs to compare.";
  const RecipeSummary& baseline = comparison.recipes.front();
  const RecipeSummary* smallest = nullptr;
  const RecipeSummary* best = nullptr;
  bool any_smaller = false;
  for (const RecipeSummary& summary : comparison.recipes) {
    if (!summary.score) continue;
    const ScoreUnit& unit = summary.unit;
    if (best == nullptr || unit.worth(summary.score->mean) > unit.worth(best->score->mean)) {
      best = &summary;
    }
    if (summary.bytes_ratio.value_or(1.0) >= kSmallerRatio || !summary.delta) continue;
    any_smaller = true;
    if (!rules_out_loss(summary, baseline)) continue;
    if (smallest == nullptr || summary.bytes.total() < smallest->bytes.total()) smallest = &summary;
  }
  const std::string margin = margin_text(baseline);
  const ScoreUnit& unit = comparison.unit;
  if (smallest != nullptr) {
    return fmt::format(
        "{}, at {} bytes per parameter instead of {}, is the smallest whose 95 % interval {}: {} "
        "{}{} against {}{} (difference {}{}, interval {}, {}).",
        smallest->recipe, fixed(smallest->bytes.total(), 2), fixed(baseline.bytes.total(), 2),
        margin, comparison.score_name, unit.text(smallest->score->mean), unit.sign(),
        unit.text(baseline.score->mean), unit.sign(), signed_fixed(*smallest->delta, unit.decimals),
        unit.of_difference(), describe(*smallest->delta_interval, unit), seeds_of(*smallest));
  }
  if (best == nullptr) {
    const bool trained =
        std::any_of(comparison.recipes.begin(), comparison.recipes.end(),
                    [](const RecipeSummary& summary) { return summary.trained(); });
    return trained ? concat("No ", to_text(unit.metric), " was measured.") : "Every run diverged.";
  }
  return fmt::format("{}{} reaches {}{} {} with {} bytes per parameter ({}).",
                     any_smaller ? "No smaller recipe's 95 % interval " + margin + ". " : "",
                     best->recipe, describe(*best->score, unit), unit.sign(), comparison.score_name,
                     fixed(best->bytes.total(), 2), seeds_of(*best));
}

std::vector<std::string> differences(const Comparison& comparison) {
  std::vector<std::string> below, above, untold, without, sentences;
  for (const RecipeSummary& summary : comparison.recipes) {
    if (!summary.delta) continue;
    const ScoreUnit& unit = summary.unit;
    const std::string difference =
        fmt::format("{} ({}{})", summary.recipe, signed_fixed(*summary.delta, unit.decimals),
                    unit.of_difference());
    if (!summary.delta_interval) {
      without.push_back(difference);
    } else if (is_below(summary)) {
      below.push_back(difference);
    } else if (is_above(summary)) {
      above.push_back(difference);
    } else {
      untold.push_back(
          fmt::format("{} ({})", summary.recipe, describe(*summary.delta_interval, unit)));
    }
  }
  const auto add = [&](const std::string& beginning, const std::vector<std::string>& recipes) {
    if (recipes.empty()) return;
    sentences.push_back(fmt::format("{}: {}.", beginning, fmt::join(recipes, ", ")));
  };
  const std::string& base = comparison.baseline;
  const bool errors = !higher_is_better(comparison.unit.metric);
  add(fmt::format("{} {} (the 95 % interval of the difference lies below 0)",
                  errors ? "Better than" : "Below", base),
      below);
  add(fmt::format("{} {} (the 95 % interval of the difference lies above 0)",
                  errors ? "Worse than" : "Above", base),
      above);
  add("Not told from " + base + " by these seeds (the 95 % interval holds 0)", untold);
  add("Without an interval, which takes two seeds or more that differ", without);
  const std::size_t intervals = below.size() + above.size() + untold.size();
  if (intervals > 1) {
    sentences.push_back(fmt::format(
        "Of {} intervals of 95 %, {} would miss 0 by chance if no recipe differed from {}.",
        intervals, fixed(0.05 * static_cast<double>(intervals), 2), base));
  }
  return sentences;
}

Page make_page(const Report& report) {
  const bool single = report.records.size() == 1;
  Page page;
  page.title = single ? "Comparison of recipes: " + title_of(report.records.front())
                      : std::string("Comparison of recipes");
  page.blocks.push_back(Paragraph{question_of(report.records)});
  double seconds = 0.0;
  for (const ComparisonRecord& record : report.records) seconds += record.seconds();
  Facts facts{{{"Machine", report.machine}, {"Time", duration(seconds)}}};
  const std::string makers = machines_of_runs(report);
  if (!makers.empty()) facts.entries.push_back({"Machines of the runs", makers});
  page.blocks.push_back(facts);
  page.blocks.push_back(Code{report.command});
  // Differences to different baselines do not belong in one row.
  if (!single && !common_baseline(report.records).empty()) {
    page.blocks.push_back(
        Paragraph{fmt::format("Differences to the baseline in {}, with the 95 % interval where "
                              "there is one; in the baseline's row its own.",
                              names_of(report.records).difference)});
    page.blocks.push_back(overview_table(report.records));
  }
  for (std::size_t i = 0; i < report.records.size(); ++i) {
    add_record(page, report.records[i], i + 1);
  }
  page.blocks.push_back(Heading{2, "Definitions"});
  page.blocks.push_back(definitions_of(report.records));
  return page;
}

}  // namespace tritgrad
