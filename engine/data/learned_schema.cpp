#include "engine/data/learned_schema.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/column_statistics.h"
#include "engine/data/label_encoder.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// A table from so many rows on is large enough that a column of as many values tells rows apart.
constexpr std::int64_t kFewestOfIdentifier = 10;

ColumnPlaces places_of(const DataTable& table, const std::vector<std::string>& names,
                       const std::string& option) {
  ColumnPlaces places;
  for (const std::string& name : names) {
    const std::size_t place = find_column(table, name, "column");
    check(place != table.label, table.where, ": ", option, " names \"", printable(name),
          "\", which is the label column; take it out, or name another label by --label");
    places.push_back(place);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

bool holds(const ColumnPlaces& places, std::size_t place) {
  return std::binary_search(places.begin(), places.end(), place);
}

bool counts_rows(const TableColumn& column) {
  const std::vector<double>& numbers = column.numbers;
  if (numbers.empty() || (numbers[0] != 0.0 && numbers[0] != 1.0)) return false;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] != numbers[0] + static_cast<double>(row)) return false;
  }
  return true;
}

bool is_called_like_index(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::string_view kNames[] = {"",   "id",  "index",    "idx",       "no",
                                         "nr", "row", "rownames", "unnamed: 0"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Says why a column tells rows apart and nothing else; empty if it does not.
std::string why_identifier(const DataTable& table, std::size_t place) {
  const TableColumn& column = table.columns[place];
  if (table.rows < kFewestOfIdentifier) return "";
  if (column.holds_words) {
    const bool all_differ = std::ssize(column.words) == table.rows && !column.missing;
    return all_differ ? concat("has a word of its own in each of the ", table.rows, " rows") : "";
  }
  const bool index_like = is_called_like_index(column.name) && (place == 0 || table.has_names);
  return index_like && counts_rows(column) ? "counts the rows" : "";
}

// The words that occur, with their counts, sorted.
std::map<std::string, std::int64_t> counted_words(const TableColumn& column) {
  std::vector<std::int64_t> counts(column.words.size(), 0);
  for (std::int32_t code : column.codes) {
    if (code >= 0) ++counts[static_cast<std::size_t>(code)];
  }
  std::map<std::string, std::int64_t> words;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) words.emplace(column.words[i], counts[i]);
  }
  return words;
}

void learn_words(const DataTable& table, std::size_t place, const TableOptions& options,
                 TableFeature& feature) {
  const auto words = counted_words(table.columns[place]);
  const std::string name = table.column_name(place), option = table.column_argument(place);
  const auto count = std::ssize(words);
  if (count > options.max_categories) {
    const bool allowed = count <= static_cast<std::ptrdiff_t>(LabelEncoder::kMaxClasses);
    fail(table.where, ": column '", name, "' holds ", count, " different words (such as ",
         quoted_cell(words.begin()->first), "), more than the ", options.max_categories,
         " that --max-categories allows; leave it out (--drop ", option, ")",
         allowed ? concat(", or allow more (--max-categories ", count, ")") : "");
  }
  std::int64_t most = 0;
  for (const auto& [word, times] : words) {
    feature.words.push_back(word);
    if (times > most && options.missing == MissingCells::kMode) feature.fill_word = word;
    most = std::max(most, times);
  }
}

void learn_numbers(DataTable& table, std::size_t place, const TableOptions& options,
                   TableFeature& feature) {
  const std::vector<double>& numbers = table.columns[place].numbers;
  const ColumnStatistics statistics = column_statistics(numbers);
  feature.offset = offset_of(statistics);
  if (options.missing == MissingCells::kMode) feature.fill_number = most_frequent(numbers);
  const std::string where =
      concat(table.where, ": numbers of column '", table.column_name(place), "'");
  for (std::string& warning : warnings_of_losses(numbers, statistics, feature.offset, where)) {
    table.remarks.warnings.push_back(std::move(warning));
  }
}

void leave_out_as_empty(DataTable& table, std::size_t place, TableSchema& schema) {
  const std::string name = table.column_name(place);
  schema.left_out.push_back(name);
  table.remarks.notes.push_back(concat("column '", name, "' is empty throughout and is left out"));
}

// Where the last columns begin that are empty throughout.
std::size_t empty_end(const DataTable& table) {
  std::size_t place = table.columns.size();
  while (place > 0 && table.columns[place - 1].is_empty) --place;
  return place;
}

}  // namespace

ColumnPlaces choose_columns(DataTable& table, const TableOptions& options, TableSchema& schema) {
  const ColumnPlaces wanted = places_of(table, options.columns, "--columns"),
                     unwanted = places_of(table, options.drop, "--drop");
  const std::size_t filled = empty_end(table);
  ColumnPlaces chosen, identifiers;
  for (std::size_t place = 0; place < table.columns.size(); ++place) {
    if (place == table.label) continue;
    if (holds(unwanted, place) || (!wanted.empty() && !holds(wanted, place))) {
      schema.left_out.push_back(table.column_name(place));
    } else if (wanted.empty() && place >= filled) {
      leave_out_as_empty(table, place, schema);
    } else if (wanted.empty() && !why_identifier(table, place).empty()) {
      identifiers.push_back(place);
    } else {
      chosen.push_back(place);
    }
  }
  if (chosen.empty()) chosen.swap(identifiers);  // better than nothing
  for (std::size_t place : identifiers) {
    const std::string name = table.column_name(place);
    schema.left_out.push_back(name);
    table.remarks.notes.push_back(
        concat("column '", name, "' ", why_identifier(table, place),
               " and is left out; to train on it all the same, name the features by --columns"));
  }
  check(!chosen.empty(), table.where,
        wanted.empty() && unwanted.empty()
            ? ": every column but that of the label is empty throughout; nothing can be learned"
            : ": no column is left to learn from; name features by --columns");
  return chosen;
}

void leave_out_empty(DataTable& table, ColumnPlaces& places, TableSchema& schema) {
  ColumnPlaces filled;
  for (std::size_t place : places) {
    const TableColumn& column = table.columns[place];
    std::int64_t row = 0;
    while (row < table.rows && column.is_missing(row)) ++row;
    row < table.rows ? filled.push_back(place) : leave_out_as_empty(table, place, schema);
  }
  check(!filled.empty(), table.where, ": every column is empty throughout; nothing can be learned");
  places = std::move(filled);
}

void learn_columns(DataTable& table, const ColumnPlaces& places, const TableOptions& options,
                   TableSchema& schema) {
  for (std::size_t place : places) {
    const TableColumn& column = table.columns[place];
    TableFeature feature;
    feature.place = static_cast<std::int64_t>(place);
    feature.name = table.has_names ? column.name : table.column_name(place);
    for (std::int64_t row = 0; row < table.rows; ++row) feature.missing += column.is_missing(row);
    feature.has_indicator = options.missing == MissingCells::kMean && feature.missing > 0;
    column.holds_words ? learn_words(table, place, options, feature)
                       : learn_numbers(table, place, options, feature);
    schema.columns.push_back(std::move(feature));
  }
}

}  // namespace tritgrad
