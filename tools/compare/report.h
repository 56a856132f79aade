// A comparison of recipes as a table for the terminal, and as a page of sentences, tables and
// pictures.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/record.h"
#include "tools/compare/summary.h"
#include "tools/report/page.h"

namespace tritgrad {

struct Report {
  std::string command;  // repeats all comparisons when typed into a shell
  std::string machine;  // one line: version, instruction set, threads, processor
  std::vector<ComparisonRecord> records;
};

// Says the result in one or two sentences: the smallest recipe whose interval rules out a loss of
// half a point of accuracy, or of a hundredth of the baseline's RMSE, or else the best recipe.
std::string conclusion(const Comparison& comparison);

// Names the recipes that are below and above the baseline, and those that these seeds cannot tell
// from it, in a sentence each.
std::vector<std::string> differences(const Comparison& comparison);

// A column of the tables that have a row for each recipe. It is described once for all of them; the
// tables have their columns in the order of summary_columns().
struct SummaryColumn {
  // On the page, and in the terminal where there is no shorter one. {base} stands for the baseline,
  // {score} and {difference} for the ScoreNames.
  std::string_view heading;
  std::string_view short_heading;  // in the terminal and in the table of bytes; empty: `heading`
  unsigned tables;                 // the tables that have it, as bits of SummaryTable
  std::function<std::string(const RecipeSummary&)> text;
  std::string_view meaning = {};  // for the definitions of the page; empty: needs none
  bool only_if_known = false;     // tables in which no recipe has a value go without it
  // In the row of a result that others published; empty: they do not tell.
  std::function<std::string(const PublishedResult&, const ScoreUnit&)> published = {};
};
enum SummaryTable : unsigned { kTerminalTable = 1, kScoreTable = 2, kBytesTable = 4 };
const std::vector<SummaryColumn>& summary_columns();
// What a score and a difference of two are called: "test accuracy %", "points of accuracy".
struct ScoreNames {
  std::string score, difference;
};
// Puts the names into a heading or a meaning.
std::string with_names(std::string_view text, const std::string& baseline, const ScoreNames& names);
// Whether the tables of a comparison have the column, if they are tables that can have it.
bool is_shown(const SummaryColumn& column, const Comparison& comparison);

std::string render_terminal_table(const ComparisonRecord& record);

// Has a row for each recipe and a column for each comparison: the difference to the baseline, with
// its interval.
PageTable overview_table(const std::vector<ComparisonRecord>& records);

// `which` is kScoreTable or kBytesTable; that of scores also has the rows that others published.
PageTable summary_table(const Comparison& comparison, SummaryTable which);
// Shows the validation score at every learning rate that was tried.
PageTable tuning_table(const ComparisonRecord& record);
PageTable runs_table(const ComparisonRecord& record);

// Draws the score against bytes, bytes by category, and training loss and scores by epoch. A
// picture without data is left out, and so is a scatter of a single recipe. The validation score is
// that of the chosen trials where rates were tuned. The names of the pictures begin with `prefix`.
std::vector<Figure> draw_charts(const ComparisonRecord& record, const Comparison& comparison,
                                const std::string& prefix = "");

Page make_page(const Report& report);

}  // namespace tritgrad
