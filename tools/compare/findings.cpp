#include "tools/compare/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tools/compare/pareto.h"
#include "tools/report/numbers.h"

namespace tritgrad {
namespace {

using RecipeText = std::function<std::string(const RecipeSummary&)>;

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + items[i];
  return text;
}

std::string delta_text(const RecipeSummary& summary) {
  return fmt::format("{} ({} points)", summary.recipe, signed_fixed(*summary.delta_points, 2));
}

class Sentences {
 public:
  explicit Sentences(const Comparison& comparison) : comparison_(comparison) {}

  // "BEGINNING: a, b, c." of the recipes for which `belongs`; nothing if there are none.
  void list(const std::string& beginning, const std::function<bool(const RecipeSummary&)>& belongs,
            const RecipeText& text) {
    std::vector<std::string> items;
    for (const RecipeSummary& summary : comparison_.recipes) {
      if (belongs(summary)) items.push_back(text(summary));
    }
    if (!items.empty()) add(beginning + ": " + joined(items) + ".");
  }
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  const Comparison& comparison_;
  std::vector<std::string> sentences_;
};

void add_differences(Sentences& sentences, const Comparison& comparison) {
  const std::string& base = comparison.baseline;
  sentences.list("Below " + base + " (the 95 % interval of the difference lies below 0)", is_below,
                 delta_text);
  sentences.list("Above " + base + " (the 95 % interval of the difference lies above 0)", is_above,
                 delta_text);
  sentences.list(
      "Not told from " + base + " by these seeds (the 95 % interval holds 0)",
      [](const RecipeSummary& s) { return s.delta_interval && s.delta_interval->contains(0.0); },
      [](const RecipeSummary& s) {
        return fmt::format("{} ({})", s.recipe, describe(*s.delta_interval));
      });
  sentences.list(
      "Compared with " + base + " without an interval, for want of seeds that scatter",
      [](const RecipeSummary& s) { return s.delta_points && !s.delta_interval; }, delta_text);
  const auto intervals = std::count_if(comparison.recipes.begin(), comparison.recipes.end(),
                                       [](const RecipeSummary& s) { return s.delta_interval; });
  if (intervals > 1) {
    sentences.add(fmt::format(
        "Of {} intervals of 95 %, {} would miss 0 by chance if no recipe differed from {}.",
        intervals, fixed(0.05 * static_cast<double>(intervals), 2), base));
  }
}

void add_front(Sentences& sentences, const Comparison& comparison) {
  std::vector<std::string> items;
  for (const std::size_t i : pareto_front(comparison)) {
    const RecipeSummary& summary = comparison.recipes[i];
    items.push_back(fmt::format("{} ({} B, {} %)", summary.recipe, fixed(summary.bytes.total(), 2),
                                fixed(100.0 * summary.accuracy->mean, 2)));
  }
  if (items.size() > 1) {
    sentences.add("On the Pareto front (nothing is as small and more accurate): " + joined(items) +
                  ".");
  }
}

void add_tuning(Sentences& sentences, const ComparisonRecord& record) {
  if (record.tunings.empty()) return;
  std::vector<std::string> edges, failures;
  for (const Tuning& tuning : record.tunings) {
    if (tuning.at_edge()) edges.push_back(tuning.recipe + " " + describe(tuning));
    for (const TuningCandidate& candidate : tuning.candidates) {
      if (candidate.val_accuracy) continue;
      failures.push_back(fmt::format("{} at {:.3g}", tuning.recipe, candidate.lr));
    }
  }
  if (!edges.empty()) {
    sentences.add("Chosen at the edge of what was tried, so that more trials might do better: " +
                  joined(edges) + ".");
  }
  if (!failures.empty()) sentences.add("Diverged while tuning: " + joined(failures) + ".");
}

}  // namespace

std::vector<std::string> findings(const ComparisonRecord& record, const Comparison& comparison) {
  Sentences sentences(comparison);
  add_differences(sentences, comparison);
  sentences.list(
      "Diverged, and missing from the means", [](const RecipeSummary& s) { return s.diverged > 0; },
      [](const RecipeSummary& s) {
        return fmt::format("{} ({} of {})", s.recipe, s.diverged, counted(s.seeds, "seed"));
      });
  add_front(sentences, comparison);
  add_tuning(sentences, record);
  return sentences.take();
}

std::string question(const std::vector<ComparisonRecord>& records) {
  std::vector<std::string> recipes, data;
  std::uint64_t fewest = 0, most = 0;
  for (const ComparisonRecord& record : records) {
    if (std::find(data.begin(), data.end(), record.data) == data.end()) data.push_back(record.data);
    std::uint64_t seeds = 0;
    for (const RunResult& run : record.runs) {
      seeds = std::max(seeds, run.seed);
      if (std::find(recipes.begin(), recipes.end(), run.recipe) == recipes.end()) {
        recipes.push_back(run.recipe);
      }
    }
    fewest = fewest == 0 ? seeds : std::min(fewest, seeds);
    most = std::max(most, seeds);
  }
  const std::string seeds = fewest == most ? counted(static_cast<std::int64_t>(most), "seed")
                                           : fmt::format("{} to {} seeds", fewest, most);
  return fmt::format(
      "How accurate are networks trained by {}, and how many bytes does each trained parameter "
      "take, on {} ({}), with {} each?",
      counted(static_cast<std::int64_t>(recipes.size()), "recipe"),
      counted(static_cast<std::int64_t>(data.size()), "data set"), joined(data), seeds);
}

}  // namespace tritgrad
