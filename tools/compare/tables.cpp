#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/text.h"
#include "tools/compare/report.h"
#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

constexpr const char* kBytesPerParameter = "bytes per parameter";

std::string score_text(const std::optional<double>& score, const ScoreUnit& unit) {
  return score ? unit.text(*score) : std::string(kMissing);
}

using SummaryRow = const RecipeSummary&;

// Returns how a column prints a member that may be absent.
template <typename T, typename Format>
auto cell_of(std::optional<T> RecipeSummary::*member, Format format) {
  return
      [=](SummaryRow row) { return row.*member ? format(*(row.*member)) : std::string(kMissing); };
}

// Returns how a column prints bytes per parameter, which are unknown where every seed diverged.
template <typename Bytes>
auto bytes_cell(Bytes bytes) {
  return [=](SummaryRow row) {
    return row.trained() ? fixed(std::invoke(bytes, row.bytes), 2) : kMissing;
  };
}

std::string delta_text(SummaryRow row) {
  return row.delta ? signed_fixed(*row.delta, row.unit.decimals) : std::string(kMissing);
}

std::string interval_text(SummaryRow row) {
  return row.delta_interval ? describe(*row.delta_interval, row.unit) : std::string(kMissing);
}

std::string difference_text(SummaryRow row) {
  if (row.is_baseline) return score_text(row) + row.unit.sign();
  if (!row.delta) return kMissing;
  const std::string delta = delta_text(row);
  return row.delta_interval ? fmt::format("{} ({})", delta, interval_text(row)) : delta;
}

std::string published_score(const PublishedResult& result, const ScoreUnit& unit) {
  const std::string score = fixed(result.score, unit.decimals);
  return result.spread ? score + " ± " + fixed(*result.spread, unit.decimals) : score;
}

std::string published_bytes(const PublishedResult& result, const ScoreUnit&) {
  return result.bytes ? fixed(*result.bytes, 2) : kMissing;
}

constexpr unsigned kAllTables = kTerminalTable | kScoreTable | kBytesTable;
constexpr unsigned kNotOfBytes = kTerminalTable | kScoreTable;

std::vector<SummaryColumn> score_columns() {
  return {
      {"recipe", "", kAllTables,
       [](SummaryRow row) {
         return row.recipe + (row.warned > 0 ? std::string(" ") + kFootnoteMark : "");
       },
       "", false, [](const PublishedResult& result, const ScoreUnit&) { return row_name(result); }},
      {"seeds", "", kScoreTable, [](SummaryRow row) { return std::to_string(row.seeds); }},
      {"{score}", "", kNotOfBytes, [](SummaryRow row) { return score_text(row); },
       "Mean over seeds ± sample standard deviation over seeds; with one cross-validated seed, "
       "over its folds. Seeds share their test rows, so that this is not the uncertainty of the "
       "score on other data.",
       false, published_score},
      {"Δ {base}", "", kNotOfBytes, delta_text, "The score minus that of {base}, in {difference}."},
      {"95 % interval", "", kNotOfBytes, interval_text,
       "Where that difference lies with 95 % confidence, from the scatter of both sides' seeds "
       "(Welch's t)."}};
}

std::vector<SummaryColumn> byte_columns() {
  std::vector<SummaryColumn> columns;
  for (const ByteCategory& category : kByteCategories) {
    columns.push_back({category.name, "", kTerminalTable | kBytesTable, bytes_cell(category.bytes),
                       category.meaning});
  }
  columns.push_back(
      {kBytesPerParameter, "total", kAllTables, bytes_cell(&BytesPerParameter::total),
       "Everything that is kept while training, divided by the number of trained parameters: the "
       "sum of weights, scales, residual, moments and gradients.",
       false, published_bytes});
  columns.push_back(
      {"of matrices alone", "", kBytesTable,
       cell_of(&RecipeSummary::bytes_per_weight, [](double v) { return fixed(v, 2); }),
       "The total of the matrices that are trained as weights, the ternary ones among "
       "them, and of their scales, divided by the number of these weights: "
       "embeddings, norms and biases, which recipes keep in other formats, are left "
       "out.",
       true});
  return columns;
}

std::vector<SummaryColumn> other_columns() {
  return {
      {"× {base}", "", kNotOfBytes,
       cell_of(&RecipeSummary::bytes_ratio, [](double v) { return fixed(v, 3); }),
       "Total bytes per parameter divided by those of {base}."},
      {"zeros", "", kNotOfBytes,
       cell_of(&RecipeSummary::zero_fraction, [](double v) { return percent(v, 1); }),
       "Share of ternary weights that are zero at the end."},
      {"flips/step", "", kScoreTable,
       cell_of(&RecipeSummary::flips_per_step, [](double v) { return human_count(v); }),
       "Ternary weights that changed their value, per optimizer step."},
      {"seconds per run", "s/run", kNotOfBytes,
       cell_of(&RecipeSummary::seconds_per_run, [](double v) { return significant(v, 3); }),
       "Wall time of one run, its test included, when it was made; the median of all seeds."},
      {"tokens a second", "tokens/s", kNotOfBytes,
       cell_of(&RecipeSummary::tokens_per_second, [](double v) { return human_count(v); }),
       "Tokens of training windows in a second of training, scores and start left out, when the "
       "runs were made; the median of all seeds.",
       true},
      {"peak memory", "", kNotOfBytes, cell_of(&RecipeSummary::peak_live_bytes, human_bytes),
       "Most bytes live at once, activations included and the data set left out; the largest of "
       "all seeds."},
      {"learning rate", "", kNotOfBytes,
       cell_of(&RecipeSummary::tuning, [](const Tuning& tuning) { return describe(tuning); }),
       "That of the weights: the recipe's own times the factor in brackets, which did best with "
       "seed 1 on rows held out of the training rows, after as many epochs as a run has or as "
       "--tune-epochs says. Test rows played no part in the choice. The seeds then trained on "
       "all training rows. Edge: the lowest or highest rate tried, so that more trials might do "
       "better. Intervals hold given these rates.",
       true}};
}

// Returns the columns of one table over these recipes.
std::vector<SummaryColumn> columns_of(const Comparison& comparison, SummaryTable which) {
  std::vector<SummaryColumn> columns;
  for (const SummaryColumn& column : summary_columns()) {
    if ((column.tables & which) == 0 || !is_shown(column, comparison)) continue;
    columns.push_back(column);
    if (which != kScoreTable && !column.short_heading.empty()) {
      columns.back().heading = column.short_heading;
    }
  }
  return columns;
}

std::vector<std::string> published_row(const PublishedResult& result, const ScoreUnit& unit,
                                       const std::vector<SummaryColumn>& columns) {
  std::vector<std::string> row;
  for (const SummaryColumn& column : columns) {
    row.push_back(column.published ? column.published(result, unit) : kMissing);
  }
  return row;
}

// Returns the cells of runs_table() from the test score on.
std::vector<std::string> result_cells(const RunResult& run, const ScoreUnit& unit) {
  std::string test = score_text(run.test_score, unit);
  if (run.test_score_std) test += " ± " + unit.text(*run.test_score_std);
  return {test,
          score_text(run.val_score, unit),
          significant(run.train_loss, 3),
          std::to_string(run.steps),
          significant(run.seconds, 3),
          human_bytes(static_cast<double>(run.peak_live_bytes)),
          fixed(run.bytes_per_parameter.total(), 2),
          run.weights_sha256};
}

std::vector<std::string> diverged_cells(const RunResult& run) {
  // Leaves out the advice behind the semicolon, which is for the command line.
  const std::string what = run.diverged.substr(0, run.diverged.find(';'));
  return {"diverged: " + what,         kMissing, kMissing, kMissing,
          significant(run.seconds, 3), kMissing, kMissing, kMissing};
}

}  // namespace

const std::vector<SummaryColumn>& summary_columns() {
  static const std::vector<SummaryColumn> columns = [] {
    std::vector<SummaryColumn> all;
    for (const auto& part : {score_columns(), byte_columns(), other_columns()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return columns;
}

bool is_shown(const SummaryColumn& column, const Comparison& comparison) {
  return !column.only_if_known ||
         std::any_of(comparison.recipes.begin(), comparison.recipes.end(),
                     [&](SummaryRow summary) { return column.text(summary) != kMissing; });
}

std::string with_names(std::string_view text, const std::string& baseline,
                       const ScoreNames& names) {
  return fmt::format(fmt::runtime(text), fmt::arg("base", baseline), fmt::arg("score", names.score),
                     fmt::arg("difference", names.difference));
}

PageTable overview_table(const std::vector<ComparisonRecord>& records) {
  PageTable table;
  table.heads = {"recipe"};
  std::vector<std::string> recipes;
  std::vector<Comparison> comparisons;
  for (const ComparisonRecord& record : records) {
    table.heads.push_back(record.title.empty() ? record.data + ", " + record.model : record.title);
    comparisons.push_back(compare(record));
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

PageTable summary_table(const Comparison& comparison, SummaryTable which) {
  const std::vector<SummaryColumn> columns = columns_of(comparison, which);
  PageTable table;
  for (const SummaryColumn& column : columns) {
    table.heads.push_back(with_names(column.heading, comparison.baseline,
                                     {comparison.score_name + comparison.unit.sign(), ""}));
  }
  for (const RecipeSummary& summary : comparison.recipes) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const SummaryColumn& column : columns) row.push_back(column.text(summary));
    // The footnotes stand below the table of scores.
    if (which == kBytesTable) row.front() = summary.recipe;
    if (summary.is_baseline) table.emphasised = row.front();
  }
  if (which == kBytesTable) return table;
  for (const PublishedResult& result : comparison.published) {
    table.rows.push_back(published_row(result, comparison.unit, columns));
  }
  return table;
}

PageTable tuning_table(const ComparisonRecord& record) {
  const ScoreUnit unit = compare(record).unit;
  const std::string head =
      unit.metric == Metric::kAccuracy ? " %" : concat(" ", to_text(unit.metric));
  PageTable table;
  table.heads = {"recipe"};
  std::set<double> factors;
  for (const Tuning& tuning : record.tunings) {
    for (const TuningCandidate& candidate : tuning.candidates) factors.insert(candidate.factor);
  }
  for (const double factor : factors) {
    table.heads.push_back(fmt::format("validation{} at × {:.3g}", head, factor));
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
      row.push_back(candidate->val_score ? unit.text(*candidate->val_score) : "diverged");
      ++candidate;
    }
    row.push_back(describe(tuning));
    table.rows.push_back(std::move(row));
  }
  table.emphasised = record.baseline;
  return table;
}

PageTable runs_table(const ComparisonRecord& record) {
  const ScoreUnit unit = compare(record).unit;
  const std::string score = concat(to_text(unit.metric), unit.sign());
  PageTable table;
  table.folded = fmt::format("Every run ({})", record.runs.size());
  table.heads = {"recipe",
                 "compute",
                 "learning rate",
                 "seed",
                 "test " + score,
                 "validation " + score,
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
        run.diverged.empty() ? result_cells(run, unit) : diverged_cells(run);
    row.insert(row.end(), result.begin(), result.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string render_terminal_table(const ComparisonRecord& record) {
  Comparison comparison = compare(record);
  if (comparison.unit.metric == Metric::kAccuracy) {
    comparison.score_name = comparison.score_name == "test accuracy" ? "test acc" : "val acc";
  }
  const PageTable cells = summary_table(comparison, kTerminalTable);
  std::vector<Column> heads;
  for (const SummaryColumn& column : columns_of(comparison, kTerminalTable)) {
    const bool first = heads.empty(), bytes = !first && (column.tables & kBytesTable) != 0;
    heads.push_back({cells.heads[heads.size()], first ? Align::kLeft : Align::kRight,
                     bytes ? kBytesPerParameter : ""});
  }
  Table table(heads);
  for (const std::vector<std::string>& row : cells.rows) table.add_row(row);
  std::string text = table.render();
  for (const std::string& note : footnotes(comparison)) text += note + "\n";
  return text;
}

}  // namespace tritgrad
