#include "tools/compare/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

std::string accuracy_text(const std::optional<double>& value) {
  return value ? fixed(100.0 * *value, 2) : std::string(kMissing);
}

std::string difference_text(const RecipeSummary& summary) {
  if (summary.is_baseline) return describe(summary).accuracy + " %";
  const SummaryText text = describe(summary);
  return summary.delta_interval ? fmt::format("{} ({})", text.delta, text.interval) : text.delta;
}

// What runs_table() says of a run from its test accuracy on.
std::vector<std::string> result_cells(const RunResult& run) {
  std::string test = accuracy_text(run.test_accuracy);
  if (run.test_accuracy_std) test += " ± " + fixed(100.0 * *run.test_accuracy_std, 2);
  return {test,
          accuracy_text(run.val_accuracy),
          significant(run.train_loss, 3),
          std::to_string(run.steps),
          significant(run.seconds, 3),
          human_bytes(static_cast<double>(run.peak_live_bytes)),
          fixed(run.bytes_per_parameter.total(), 2),
          run.weights_sha256};
}

std::vector<std::string> diverged_cells(const RunResult& run) {
  // What happened; the advice that follows is for the command line.
  const std::string what = run.diverged.substr(0, run.diverged.find(';'));
  return {"diverged: " + what,         kMissing, kMissing, kMissing,
          significant(run.seconds, 3), kMissing, kMissing, kMissing};
}

}  // namespace

PageTable overview_table(const std::vector<ComparisonRecord>& records) {
  PageTable table;
  table.heads = {"recipe"};
  std::vector<std::string> recipes;
  std::vector<Comparison> comparisons;
  for (const ComparisonRecord& record : records) {
    table.heads.push_back(record.data + ", " + record.model);
    comparisons.push_back(compare(record.runs, record.baseline));
    for (const RecipeSummary& summary : comparisons.back().recipes) {
      const bool known = std::find(recipes.begin(), recipes.end(), summary.recipe) != recipes.end();
      if (!known) recipes.push_back(summary.recipe);
      if (summary.is_baseline) table.emphasised = summary.recipe;
    }
  }
  for (const std::string& recipe : recipes) {
    std::vector<std::string> row = {recipe};
    for (const Comparison& comparison : comparisons) {
      const auto found =
          std::find_if(comparison.recipes.begin(), comparison.recipes.end(),
                       [&](const RecipeSummary& summary) { return summary.recipe == recipe; });
      row.push_back(found == comparison.recipes.end() ? kMissing : difference_text(*found));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

PageTable accuracy_table(const ComparisonRecord& record, const Comparison& comparison) {
  const std::string& base = comparison.baseline;
  PageTable table;
  table.heads = {"recipe",          "seeds",         comparison.accuracy_name + " %",
                 "Δ " + base,       "95 % interval", "bytes per parameter",
                 "× " + base,       "zeros",         "flips/step",
                 "seconds per run", "peak memory"};
  const bool tuned = !record.tunings.empty();
  if (tuned) table.heads.push_back("learning rate");
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    table.rows.push_back({text.recipe, std::to_string(summary.seeds), text.accuracy, text.delta,
                          text.interval, text.total, text.ratio, text.zeros, text.flips,
                          text.seconds_per_run, text.peak});
    if (tuned) {
      const Tuning* tuning = record.tuning_of(summary.recipe);
      table.rows.back().push_back(tuning != nullptr ? describe(*tuning) : kMissing);
    }
    if (summary.is_baseline) table.emphasised = text.recipe;
  }
  return table;
}

PageTable bytes_table(const Comparison& comparison) {
  PageTable table;
  table.heads = {"recipe", "weights", "scales", "residual", "moments", "gradients", "total"};
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    table.rows.push_back({summary.recipe, text.weights, text.scales, text.residual, text.moments,
                          text.gradients, text.total});
    if (summary.is_baseline) table.emphasised = summary.recipe;
  }
  return table;
}

PageTable tuning_table(const ComparisonRecord& record) {
  PageTable table;
  table.heads = {"recipe"};
  std::set<double> factors;
  for (const Tuning& tuning : record.tunings) {
    for (const TuningCandidate& candidate : tuning.candidates) factors.insert(candidate.factor);
  }
  for (const double factor : factors) {
    table.heads.push_back(fmt::format("validation % at × {:.3g}", factor));
  }
  table.heads.push_back("chosen rate");
  for (const Tuning& tuning : record.tunings) {
    std::vector<std::string> row = {tuning.recipe};
    auto candidate = tuning.candidates.begin();
    for (const double factor : factors) {
      if (candidate == tuning.candidates.end() || candidate->factor != factor) {
        row.push_back(kMissing);
        continue;
      }
      row.push_back(candidate->val_accuracy ? accuracy_text(candidate->val_accuracy) : "diverged");
      ++candidate;
    }
    row.push_back(describe(tuning));
    table.rows.push_back(std::move(row));
  }
  table.emphasised = record.baseline;
  return table;
}

PageTable runs_table(const ComparisonRecord& record) {
  PageTable table;
  table.folded = fmt::format("Every run ({})", record.runs.size());
  table.heads = {"recipe",
                 "compute",
                 "learning rate",
                 "seed",
                 "test accuracy %",
                 "validation accuracy %",
                 "training loss",
                 "steps",
                 "seconds",
                 "peak memory",
                 "bytes per parameter",
                 "SHA-256 of the weights"};
  for (const RunResult& run : record.runs) {
    std::vector<std::string> row = {run.recipe, run.compute, fmt::format("{:g}", run.lr),
                                    std::to_string(run.seed)};
    const std::vector<std::string> result =
        run.diverged.empty() ? result_cells(run) : diverged_cells(run);
    row.insert(row.end(), result.begin(), result.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string render_terminal_table(const ComparisonRecord& record) {
  const Comparison comparison = compare(record.runs, record.baseline);
  const bool tested = comparison.accuracy_name == "test accuracy";
  constexpr const char* kBytes = "bytes per parameter";
  std::vector<Column> columns = {{"recipe"},
                                 {tested ? "test acc %" : "val acc %", Align::kRight},
                                 {"Δ " + comparison.baseline, Align::kRight},
                                 {"95 % interval", Align::kRight},
                                 {"weights", Align::kRight, kBytes},
                                 {"scales", Align::kRight, kBytes},
                                 {"residual", Align::kRight, kBytes},
                                 {"moments", Align::kRight, kBytes},
                                 {"gradients", Align::kRight, kBytes},
                                 {"total", Align::kRight, kBytes},
                                 {"× " + comparison.baseline, Align::kRight},
                                 {"zeros", Align::kRight},
                                 {"s/run", Align::kRight},
                                 {"peak memory", Align::kRight}};
  const bool tuned = !record.tunings.empty();
  if (tuned) columns.push_back({"learning rate", Align::kRight});
  Table table(columns);
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    std::vector<std::string> cells = {
        text.recipe, text.accuracy, text.delta,           text.interval,  text.weights,
        text.scales, text.residual, text.moments,         text.gradients, text.total,
        text.ratio,  text.zeros,    text.seconds_per_run, text.peak};
    if (tuned) {
      const Tuning* tuning = record.tuning_of(summary.recipe);
      cells.push_back(tuning != nullptr ? describe(*tuning) : kMissing);
    }
    table.add_row(cells);
  }
  std::string text = table.render();
  for (const std::string& note : footnotes(comparison)) text += note + "\n";
  return text;
}

}  // namespace tritgrad
