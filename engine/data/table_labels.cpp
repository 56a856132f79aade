#include "engine/data/table_labels.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/label_encoder.h"
#include "engine/data/targets.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

[[noreturn]] void fail_for_missing_label(const DataTable& table, std::int64_t row,
                                         bool knows_columns) {
  // No row before this one lacks its label, so it is the one that the column has noted.
  const std::string& text = table.columns[table.label].missing->text;
  const std::string remedy = "; fill or remove the row, or leave such rows out by --missing drop";
  if (text.empty()) fail(table.place(row), ": the label is empty", remedy);
  fail(table.place(row), ": the label ", quoted_cell(text), " stands for a missing cell", remedy,
       knows_columns ? ""
                     : ", or, if it is a class, say --words " + table.column_argument(table.label));
}

// Returns the number that each of the column's words is; NaN for what is none, or none to predict.
std::vector<double> numbers_of_words(const TableColumn& column) {
  std::vector<double> numbers;
  for (const std::string& word : column.words) {
    const std::optional<double> number = parse_number(word);
    const bool usable = number && is_usable_target(*number);
    numbers.push_back(usable ? *number : std::numeric_limits<double>::quiet_NaN());
  }
  return numbers;
}

// Returns the text of a row's label, which is not missing.
std::string label_text(const TableColumn& column, std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  return column.holds_words ? column.words[static_cast<std::size_t>(column.codes[at])]
                            : number_text(column.numbers[at]);
}

// Returns the numbers of the rows that have a label; none where a label is no number.
std::vector<double> label_numbers(const DataTable& table) {
  const TableColumn& column = table.columns[table.label];
  const std::vector<double> of_words = numbers_of_words(column);
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (column.is_missing(row)) continue;
    const auto at = static_cast<std::size_t>(row);
    const double number = column.holds_words ? of_words[static_cast<std::size_t>(column.codes[at])]
                                             : column.numbers[at];
    if (std::isnan(number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

// Decides between classes and targets. A model that knows classes has its schema beside it.
bool takes_targets(DataTable& table, const TableOptions& options) {
  if (options.task != TaskKind::kAuto) return options.task == TaskKind::kRegress;
  if (options.schema != nullptr || !options.class_names.empty()) return false;
  const std::vector<double> numbers = label_numbers(table);
  const bool measured = look_measured(numbers);
  const std::string label = concat("'", table.column_name(table.label), "'");
  std::string note = measured ? note_of_measured(label, numbers) : note_of_classes(label, numbers);
  if (!note.empty()) table.remarks.notes.push_back(std::move(note));
  return measured;
}

[[noreturn]] void fail_for_word(const DataTable& table, std::int64_t row, const std::string& text,
                                bool to_score) {
  const std::optional<double> number = parse_number(text);
  if (number && !std::isnan(*number)) {
    fail(table.place(row), ": the label is ", quoted_cell(text),
         ", a number up to 3.4e38 expected; mend or remove the row");
  }
  const bool may_be_name = row == 0 && !table.has_names;
  fail(table.place(row), ": the label ", quoted_cell(text), " is no number to predict; ",
       may_be_name ? "if the first line holds names, say --header yes; else " : "",
       to_score ? "mend or remove the row, or name another column by --label"
                : "mend or remove the row, name another column by --label, or train on classes "
                  "(--task classify)");
}

void write_targets(DataTable& table, const TableOptions& options, Dataset& dataset) {
  const TableColumn& column = table.columns[table.label];
  const bool to_score = options.schema != nullptr;
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (column.is_missing(row)) fail_for_missing_label(table, row, true);
    const std::string text = label_text(column, row);
    const std::optional<double> number = parse_number(text);
    if (!number || !is_usable_target(*number)) fail_for_word(table, row, text, to_score);
    dataset.targets.push_back(*number);
  }
  check_targets(dataset, table.where, to_score,
                "name the column of the numbers to predict by --label");
  if (to_score) return;
  std::string warning =
      warning_of_outliers(dataset.targets, [&](std::int64_t row) { return table.place(row); });
  if (!warning.empty()) table.remarks.warnings.push_back(std::move(warning));
}

void write_classes(const DataTable& table, const TableOptions& options, Dataset& dataset) {
  const TableColumn& column = table.columns[table.label];
  LabelEncoder labels(table.where, "name the column that holds classes by --label");
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (column.is_missing(row)) fail_for_missing_label(table, row, options.schema != nullptr);
    const std::string text = label_text(column, row);
    if (const auto number = parse_number(text); number && std::isinf(*number)) {
      fail(table.place(row), ": the label is ", quoted_cell(text), "; fill or remove the row");
    }
    labels.add(text);
  }
  const bool to_score = options.schema != nullptr;
  labels.finish(
      dataset, to_score ? options.schema->class_names : options.class_names,
      [&](std::int64_t row) { return table.place(row); }, to_score);
}

}  // namespace

void write_labels(DataTable& table, const TableOptions& options, Dataset& dataset) {
  if (takes_targets(table, options)) {
    write_targets(table, options, dataset);
  } else {
    write_classes(table, options, dataset);
  }
}

}  // namespace tritgrad
