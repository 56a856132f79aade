#include "tools/compare/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "engine/check.h"
#include "engine/text.h"
#include "tools/report/number_text.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

using RunList = std::vector<const RunResult*>;
using OptionalField = std::optional<double> RunResult::*;
using ValueOf = std::function<double(const RunResult&)>;

bool present(const std::optional<double>& value) { return value && std::isfinite(*value); }

// The finite values of the runs that did not diverge.
std::vector<double> values(const RunList& runs, const ValueOf& value_of) {
  std::vector<double> found;
  for (const RunResult* run : runs) {
    if (!run->diverged.empty()) continue;
    const double value = value_of(*run);
    if (std::isfinite(value)) found.push_back(value);
  }
  return found;
}

std::optional<double> mean(const RunList& runs, const ValueOf& value_of) {
  const std::vector<double> found = values(runs, value_of);
  if (found.empty()) return std::nullopt;
  return std::accumulate(found.begin(), found.end(), 0.0) / static_cast<double>(found.size());
}

std::optional<Estimate> estimate(const RunList& runs, OptionalField field) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  Estimate result;
  const std::vector<double> found =
      values(runs, [&](const RunResult& run) { return (run.*field).value_or(kNoNumber); });
  if (found.empty()) return std::nullopt;
  for (const double value : found) result.mean += (value - result.mean) / ++result.count;
  if (result.count == 1) return result;
  double squares = 0;
  for (const double value : found) squares += std::pow(value - result.mean, 2);
  result.spread = std::sqrt(squares / (result.count - 1));
  return result;
}

std::optional<Estimate> score_of(const RunList& runs, OptionalField field) {
  std::optional<Estimate> result = estimate(runs, field);
  const bool folds_only = result && result->count == 1 && field == &RunResult::test_score;
  if (!folds_only) return result;
  for (const RunResult* run : runs) {
    if (present(run->test_score) && run->folds > 1 && present(run->test_score_std)) {
      result->spread = run->test_score_std;
      result->count = run->folds;
      result->over_folds = true;
    }
  }
  return result;
}

RecipeSummary summarize(const std::string& recipe, const RunList& runs, OptionalField field) {
  RecipeSummary summary;
  summary.recipe = recipe;
  summary.seeds = static_cast<int>(runs.size());
  summary.diverged = static_cast<int>(std::count_if(
      runs.begin(), runs.end(), [](const RunResult* run) { return !run->diverged.empty(); }));
  for (const RunResult* run : runs) {
    if (run->warnings.empty()) continue;
    if (summary.warned++ == 0) summary.warning = run->warnings.front();
  }
  summary.score = score_of(runs, field);
  summary.train_loss = mean(runs, [](const RunResult& run) { return run.train_loss; });
  for (const ByteCategory& category : kByteCategories) {
    summary.bytes.*category.bytes = mean(runs, [&](const RunResult& run) {
                                      return run.bytes_per_parameter.*category.bytes;
                                    }).value_or(0.0);
  }
  const std::vector<double> seconds =
      values(runs, [](const RunResult& run) { return run.seconds; });
  if (!seconds.empty()) summary.seconds_per_run = median(seconds);
  const std::optional<Estimate> zeros = estimate(runs, &RunResult::zero_fraction);
  if (zeros) {
    summary.zero_fraction = zeros->mean;
    summary.flips_per_step = mean(runs, [](const RunResult& run) { return run.flips_per_step; });
  }
  if (summary.trained()) {
    const auto largest =
        std::max_element(runs.begin(), runs.end(), [](const RunResult* a, const RunResult* b) {
          return a->peak_live_bytes < b->peak_live_bytes;
        });
    summary.peak_live_bytes = static_cast<double>((*largest)->peak_live_bytes);
  }
  return summary;
}

// The median over the runs of a recipe. What is no training does not count: a start, scores,
// checkpoints.
std::optional<double> tokens_per_second(const ComparisonRecord& record, const std::string& recipe) {
  RunList runs;
  for (const RunResult& run : record.runs) {
    if (run.recipe == recipe) runs.push_back(&run);
  }
  const std::vector<double> rates = values(runs, [&](const RunResult& run) {
    const double tokens = static_cast<double>(record.tokens_per_epoch) * run.epochs;
    return tokens / (run.time.batches + run.time.steps);
  });
  if (rates.empty()) return std::nullopt;
  return median(rates);
}

void compare_with_baseline(const RecipeSummary& baseline, RecipeSummary& summary) {
  if (baseline.bytes.total() > 0 && summary.trained()) {
    summary.bytes_ratio = summary.bytes.total() / baseline.bytes.total();
  }
  if (!summary.score || !baseline.score || summary.is_baseline) return;
  const Estimate& ours = *summary.score;
  const Estimate& theirs = *baseline.score;
  const ScoreUnit& unit = summary.unit;
  summary.delta = unit.written(ours.mean - theirs.mean);
  if (ours.over_folds || theirs.over_folds) return;  // folds of one seed share their rows
  const auto moments = [&unit](const Estimate& of) {
    return SampleMoments{unit.written(of.mean), unit.written(of.spread.value_or(0.0)), of.count};
  };
  summary.delta_interval = welch_interval(moments(ours), moments(theirs));
}

// Values as they are printed: what the page calls the front must not contradict its own numbers.
double printed(double value, int decimals) {
  return std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr);
}
double printed_bytes(const RecipeSummary& recipe) { return printed(recipe.bytes.total(), 2); }
double printed_worth(const RecipeSummary& recipe) {
  const ScoreUnit& unit = recipe.unit;
  return unit.worth(printed(unit.written(recipe.score->mean), unit.decimals));
}

// Four digits of the baseline's score, or of the first that there is.
ScoreUnit unit_of(Metric metric, const std::vector<RecipeSummary>& recipes) {
  for (const RecipeSummary& recipe : recipes) {
    if (recipe.score) return score_unit(metric, recipe.score->mean);
  }
  return score_unit(metric, 0.0);
}

}  // namespace

bool is_below(const RecipeSummary& summary) {
  return summary.delta_interval && summary.delta_interval->high < 0.0;
}

bool is_above(const RecipeSummary& summary) {
  return summary.delta_interval && summary.delta_interval->low > 0.0;
}

Comparison compare(const std::vector<RunResult>& runs, const std::string& baseline) {
  std::vector<std::string> order;
  bool any_test = false, any_validation = false;
  for (const RunResult& run : runs) {
    if (std::find(order.begin(), order.end(), run.recipe) == order.end()) {
      order.push_back(run.recipe);
    }
    any_test |= present(run.test_score);
    any_validation |= present(run.val_score);
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const std::string& recipe) { return recipe == baseline; });

  Comparison comparison;
  const bool validated = any_validation && !any_test;
  const Metric metric = runs.empty() ? Metric::kAccuracy : runs.front().metric;
  comparison.score_name = concat(validated ? "validation " : "test ", to_text(metric));
  comparison.baseline = order.empty() ? baseline : order.front();
  const OptionalField field = validated ? &RunResult::val_score : &RunResult::test_score;
  for (const std::string& recipe : order) {
    RunList mine;
    for (const RunResult& run : runs) {
      if (run.recipe == recipe) mine.push_back(&run);
    }
    comparison.recipes.push_back(summarize(recipe, mine, field));
  }
  comparison.unit = unit_of(metric, comparison.recipes);
  for (RecipeSummary& summary : comparison.recipes) summary.unit = comparison.unit;
  if (!order.empty()) {
    comparison.recipes.front().is_baseline = true;
    const RecipeSummary reference = comparison.recipes.front();
    for (RecipeSummary& summary : comparison.recipes) compare_with_baseline(reference, summary);
  }
  return comparison;
}

Comparison compare(const ComparisonRecord& record) {
  Comparison comparison = compare(record.runs, record.baseline);
  for (RecipeSummary& summary : comparison.recipes) {
    for (const Tuning& tuning : record.tunings) {
      if (tuning.recipe == summary.recipe) summary.tuning = tuning;
    }
    for (const WeightBytes& bytes : record.weight_bytes) {
      if (bytes.recipe == summary.recipe) summary.bytes_per_weight = bytes.per_weight;
    }
    if (record.tokens_per_epoch > 0) {
      summary.tokens_per_second = tokens_per_second(record, summary.recipe);
    }
  }
  comparison.published = record.published;
  return comparison;
}

std::vector<std::size_t> pareto_front(const Comparison& comparison) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.recipes.size(); ++i) {
    if (comparison.recipes[i].score) order.push_back(i);
  }
  // By bytes, and the better first where they are equal.
  const auto rank = [&](std::size_t i) {
    const RecipeSummary& recipe = comparison.recipes[i];
    return std::tuple(printed_bytes(recipe), -printed_worth(recipe));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<std::size_t> front;
  double best = -std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    const double worth = printed_worth(comparison.recipes[i]);
    if (worth <= best) continue;
    best = worth;
    front.push_back(i);
  }
  return front;
}

std::string row_name(const PublishedResult& result) { return result.name + " (published)"; }

std::vector<std::string> footnotes(const Comparison& comparison) {
  std::vector<std::string> notes;
  for (const RecipeSummary& summary : comparison.recipes) {
    if (summary.warned == 0) continue;
    notes.push_back(concat(kFootnoteMark, " ", summary.recipe, ", warned of in ", summary.warned,
                           " of ", counted(summary.seeds, "seed"), ": ", summary.warning));
  }
  for (const PublishedResult& result : comparison.published) {
    notes.push_back(concat(row_name(result), ": ", result.protocol));
  }
  return notes;
}

std::string describe(const Estimate& score, const ScoreUnit& unit) {
  return unit.text(score.mean) + (score.spread ? " ± " + unit.text(*score.spread) : "");
}

std::string describe(const Interval& of_delta, const ScoreUnit& unit) {
  return signed_fixed(of_delta.low, unit.decimals) + " … " +
         signed_fixed(of_delta.high, unit.decimals);
}

std::string score_text(const RecipeSummary& summary) {
  const std::string text = summary.score ? describe(*summary.score, summary.unit) : kMissing;
  return summary.diverged > 0 ? concat(text, " (", summary.diverged, " diverged)") : text;
}

}  // namespace tritgrad
