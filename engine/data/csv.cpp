#include "engine/data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/csv_records.h"
#include "engine/data/table_dataset.h"
#include "engine/data/table_text.h"
#include "engine/files/read_file.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

using CsvHeader = CsvOptions::Header;
using Cells = std::vector<std::string>;

// Counts what the cells of a column are; the first line takes no part.
struct ColumnSurvey {
  std::int64_t numbers = 0, words = 0;
  bool is_empty = true;        // no cell holds a character
  bool repeats_first = false;  // a cell is the same as that of the first line

  void add(std::string_view cell) {
    double number = 0.0;
    const CellKind kind = classify_cell(cell, number);
    numbers += kind == CellKind::kNumber || kind == CellKind::kMiswritten;
    words += kind == CellKind::kWord;
    is_empty = is_empty && cell.empty();
  }
  bool holds_words() const { return words > numbers; }
};

struct CsvSurvey {
  Cells first;
  std::vector<ColumnSurvey> columns;
  std::int64_t rows = 0;  // below the first line
};

// The rows are those between the first line, which says how many cells there are, and this one.
void check_cell_count(const Cells& cells, std::size_t expected, const std::string& where,
                      std::int64_t line, std::int64_t rows) {
  if (cells.size() == expected) return;
  const char* advice = "";
  if (cells.size() == expected + 1 && cells.back().empty()) {
    advice = "; the line ends in a separator, remove it, or end the first line in one too";
  } else if (rows == 0) {
    advice = "; if the first line is a title and no row, remove it";
  } else if (cells.size() > expected) {
    advice = "; quote cells that hold the separator, and write 1.5 for 1,5";
  }
  fail(where, ", line ", line, ": ", counted(std::ssize(cells), "cell"), " found, ", expected,
       " expected as in the first line", advice);
}

CsvSurvey survey_csv(std::string_view text, const std::string& where) {
  CsvRecords records(text, where);
  CsvSurvey survey;
  check(records.next(survey.first), where, ": the file is empty; at least two rows of data needed");
  survey.columns.resize(survey.first.size());
  for (Cells cells; records.next(cells); ++survey.rows) {
    check_cell_count(cells, survey.first.size(), where, records.line(), survey.rows);
    for (std::size_t column = 0; column < cells.size(); ++column) {
      ColumnSurvey& each = survey.columns[column];
      each.add(cells[column]);
      each.repeats_first = each.repeats_first || cells[column] == survey.first[column];
    }
  }
  return survey;
}

bool is_name(std::string_view cell) {
  double number = 0.0;
  return classify_cell(cell, number) == CellKind::kWord;
}

// Says whether the first line, the label apart, holds no numbers, and names.
bool looks_like_header(const Cells& cells, std::size_t label) {
  bool any_name = false;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (column == label) continue;
    if (parse_number(cells[column])) return false;
    any_name = any_name || is_name(cells[column]);
  }
  return any_name;
}

// Says whether the lines below prove that one without numbers is a row: no column of numbers stands
// below a name, and a word comes again in its column, or is one that the model knows there.
bool is_row_of_words(const CsvSurvey& survey, std::size_t label, const TableSchema* schema) {
  bool is_row = false;
  for (std::size_t column = 0; column < survey.columns.size(); ++column) {
    if (column == label || !is_name(survey.first[column])) continue;
    const ColumnSurvey& each = survey.columns[column];
    if (each.numbers > 0 && !each.holds_words()) return false;
    is_row = is_row || each.repeats_first;
  }
  if (schema == nullptr || is_row) return is_row;
  return std::any_of(
      schema->columns.begin(), schema->columns.end(), [&](const TableFeature& feature) {
        const auto place = static_cast<std::size_t>(feature.place);
        return place < survey.first.size() &&
               std::binary_search(feature.words.begin(), feature.words.end(), survey.first[place]);
      });
}

bool names_any(const Cells& cells, const TableSchema& schema) {
  const std::unordered_set<std::string_view> names(cells.begin(), cells.end());
  const auto has = [&](const std::string& name) { return !name.empty() && names.contains(name); };
  return has(schema.label) || std::any_of(schema.columns.begin(), schema.columns.end(),
                                          [&](const auto& each) { return has(each.name); });
}

// The last column that holds anything below the first line, else the first.
std::size_t last_filled(const CsvSurvey& survey, std::size_t columns) {
  while (columns > 1 && survey.rows > 0 && survey.columns[columns - 1].is_empty) --columns;
  return columns - 1;
}

// Finds the label column and whether the first line holds names; sets both in the table, whose
// columns have that line's cells for names.
void find_layout(const CsvSurvey& survey, const CsvOptions& options, DataTable& table) {
  const TableSchema* schema = options.schema;
  const Cells& cells = survey.first;
  table.has_names = options.header == CsvHeader::kYes;
  const bool is_auto = options.header == CsvHeader::kAuto;
  table.label = last_filled(survey, table.columns.size());
  if (is_auto && schema != nullptr && schema->has_names) {
    table.has_names = names_any(cells, *schema);
  }
  const bool may_name = is_auto && (table.has_names || looks_like_header(cells, cells.size()));
  // A model knows its label column by name, wherever it stands.
  const bool by_schema = schema != nullptr && table.has_names && table.find(schema->label);
  const std::string& label = by_schema ? schema->label : options.label;
  const auto named = table.find(label);
  if (named && options.header != CsvHeader::kNo) {
    // A name that stands in the first line, and no number, proves that the line holds names.
    table.has_names = table.has_names || may_name || !parse_number(label);
  }
  if (options.header == CsvHeader::kNo || (named && !table.has_names)) {
    for (TableColumn& column : table.columns) column.name.clear();
  }
  if (!label.empty()) {
    const bool has_names = std::exchange(table.has_names, options.header != CsvHeader::kNo);
    table.label = find_column(table, label, "label column");
    table.has_names = has_names;
  }
  if (is_auto && !table.has_names) {
    table.has_names =
        looks_like_header(cells, table.label) && !is_row_of_words(survey, table.label, schema);
  }
  // A first line of data fills the last column.
  if (label.empty() && !table.has_names) table.label = table.columns.size() - 1;
}

// Says whether the first line counts 0, 1, 2, ... as pandas names columns that have no names. Two
// columns are too few to tell that from data.
bool counts_columns(const Cells& cells, std::size_t columns) {
  for (std::size_t column = 0; column < columns; ++column) {
    if (cells[column] != std::to_string(column)) return false;
  }
  return columns > 2;
}

// Checkpoints and results hold names as JSON, which knows no other text.
void check_header(const DataTable& table, std::int64_t line) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (is_utf8(table.columns[column].name)) continue;
    fail(table.where, ", line ", line, ": the name of column ", column,
         " is not UTF-8; save the file as UTF-8");
  }
}

// Fills the columns of a table with cells.
class TableFiller {
 public:
  TableFiller(DataTable& table, const CsvOptions& options)
      : table_(table), codes_(table.columns.size()) {
    classes_ = options.schema == nullptr ? options.class_names : options.schema->class_names;
    holds_markers_ = options.schema == nullptr &&
                     std::any_of(options.words.begin(), options.words.end(), [&](const auto& name) {
                       return find_column(table, name, "column") == table.label;
                     });
  }

  void add(const Cells& cells, std::int64_t line) {
    line_ = line;
    for (std::size_t column = 0; column < table_.columns.size(); ++column) {
      TableColumn& each = table_.columns[column];
      if (column == table_.label) {
        add_word(cells[column], is_missing_label(cells[column]), column);
      } else if (each.holds_words) {
        double number = 0.0;
        add_word(cells[column], classify_cell(cells[column], number) == CellKind::kMissing, column);
      } else {
        add_number(cells[column], each);
      }
    }
    table_.lines.push_back(line);
    ++table_.rows;
  }

 private:
  // A marker of missing cells is a label where the column was said to hold words, or where there is
  // a class of that name.
  bool is_missing_label(const std::string& cell) const {
    if (!is_missing_marker(cell)) return cell.empty();
    return !holds_markers_ && std::find(classes_.begin(), classes_.end(), cell) == classes_.end();
  }

  void add_number(const std::string& cell, TableColumn& column) {
    double number = 0.0;
    const CellKind kind = classify_cell(cell, number);
    // Compared in double, because converting a larger value to float is undefined.
    const bool usable =
        kind == CellKind::kNumber && std::abs(number) <= std::numeric_limits<float>::max();
    if (kind == CellKind::kMissing) {
      note(column.missing, cell);
    } else if (!usable) {
      note(column.unusable, cell);
    }
    column.numbers.push_back(usable ? number : std::numeric_limits<double>::quiet_NaN());
  }

  void add_word(const std::string& cell, bool is_missing, std::size_t place) {
    TableColumn& column = table_.columns[place];
    if (is_missing) {
      note(column.missing, cell);
      column.codes.push_back(-1);
      return;
    }
    const auto [found, is_new] =
        codes_[place].try_emplace(cell, static_cast<std::int32_t>(column.words.size()));
    if (is_new) {
      if (!is_utf8(cell)) {
        const std::string what =
            place == table_.label ? "the label" : table_.column_name(place) + ", the cell";
        fail(table_.where, ", line ", line_, ": ", what, " is not UTF-8; save the file as UTF-8");
      }
      column.words.push_back(cell);
    }
    column.codes.push_back(found->second);
  }

  void note(std::optional<TableCell>& first, const std::string& cell) const {
    if (!first) first = {table_.rows, cell};
  }

  DataTable& table_;
  std::vector<std::unordered_map<std::string, std::int32_t>> codes_;  // of the words of a column
  std::vector<std::string> classes_;                                  // that are known
  bool holds_markers_ = false;                                        // as labels
  std::int64_t line_ = 0;
};

// Decides which columns hold words: those that a model has so or that the options name, else those
// that the survey finds.
void choose_kinds(const CsvSurvey& survey, const CsvOptions& options, DataTable& table) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    ColumnSurvey whole = survey.columns[column];
    if (!table.has_names) whole.add(survey.first[column]);
    table.columns[column].holds_words = whole.holds_words();
  }
  if (options.schema == nullptr) {
    for (const std::string& name : options.words) {
      table.columns[find_column(table, name, "column")].holds_words = true;
    }
  } else {
    const std::vector<std::size_t> places = columns_of(*options.schema, table);
    for (std::size_t i = 0; i < places.size(); ++i) {
      table.columns[places[i]].holds_words = !options.schema->columns[i].words.empty();
    }
  }
  table.columns[table.label].holds_words = true;
}

// Takes away the last columns that are empty throughout, as of lines that end in separators.
void drop_empty_ends(const CsvSurvey& survey, DataTable& table) {
  std::size_t columns = table.columns.size();
  while (columns > 1 && survey.first[columns - 1].empty() && survey.rows > 0 &&
         survey.columns[columns - 1].is_empty) {
    --columns;
  }
  if (columns == table.columns.size()) return;
  table.remarks.notes.push_back(columns + 1 == table.columns.size()
                                    ? "the last column is empty throughout and is left out"
                                    : concat("the last ", table.columns.size() - columns,
                                             " columns are empty throughout and are left out"));
  table.columns.resize(columns);
}

// Names of columns may be numbers, so a first line with a label of its own is one of names or of
// data.
void check_first_label(const Dataset& dataset) {
  if (dataset.is_regression()) return;  // each label may well be one of its own
  const std::vector<std::int64_t> counts = dataset.class_counts();
  const auto first = static_cast<std::size_t>(dataset.labels[0]);
  const bool lone = counts[first] == 1 && std::count(counts.begin(), counts.end(), 1) == 1;
  check(!lone, dataset.name, ": the label of the first line, ",
        quoted_cell(dataset.class_names[first]),
        ", is that of no other line; say whether the line holds names (--header yes) or data "
        "(--header no)");
}

}  // namespace

DataTable parse_csv_table(std::string_view text, const std::string& where,
                          const CsvOptions& options) {
  const CsvSurvey survey = survey_csv(text, where);
  DataTable table;
  table.where = where;
  table.columns.resize(survey.first.size());
  for (std::size_t column = 0; column < survey.first.size(); ++column) {
    table.columns[column].name = survey.first[column];
  }
  drop_empty_ends(survey, table);
  check(table.columns.size() > 1, where,
        ": only one column found, at least one feature and a label needed; ",
        "separate cells by comma, semicolon or tab");
  find_layout(survey, options, table);
  CsvRecords records(text, where);
  Cells cells;
  records.next(cells);
  if (table.has_names) {
    check_header(table, records.line());
    check(survey.rows > 0, where, ": no rows of data; only a header line was found");
  } else {
    for (TableColumn& column : table.columns) column.name.clear();
    if (options.header == CsvHeader::kAuto && counts_columns(survey.first, table.columns.size())) {
      table.remarks.notes.push_back(
          concat("the first line, 0 to ", table.columns.size() - 1,
                 ", is read as a row, though it may number the columns, as pandas does; if so, say "
                 "--header yes"));
    }
  }
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    table.columns[column].is_empty =
        survey.columns[column].is_empty && (table.has_names || survey.first[column].empty());
  }
  choose_kinds(survey, options, table);
  TableFiller filler(table, options);
  if (!table.has_names) filler.add(cells, records.line());
  while (records.next(cells)) filler.add(cells, records.line());
  return table;
}

Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options) {
  DataTable table = parse_csv_table(text, where, options);
  const bool may_hide_names =
      options.header == CsvHeader::kAuto && !table.has_names && options.schema == nullptr;
  Dataset dataset = make_dataset(std::move(table), options);
  if (may_hide_names) check_first_label(dataset);
  return dataset;
}

Dataset read_csv(const std::string& path, const CsvOptions& options) {
  const std::string where = table_source(path);
  Dataset dataset = parse_csv(decode_table_text(read_file_or_pipe(path), where), where, options);
  dataset.name = table_name(path);
  return dataset;
}

}  // namespace tritgrad
