#include "engine/data/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

template <typename Vector>
void keep_rows(Vector& values, const std::vector<char>& kept) {
  if (values.empty()) return;
  std::size_t to = 0;
  for (std::size_t from = 0; from < kept.size(); ++from) {
    if (kept[from] != 0) values[to++] = values[from];
  }
  values.resize(to);
}

}  // namespace

bool TableColumn::is_missing(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return holds_words ? codes[at] < 0 : std::isnan(numbers[at]);
}

std::string DataTable::column_name(std::size_t column) const {
  const std::string& name = columns[column].name;
  return name.empty() ? concat("column ", column) : printable(name);
}

std::string DataTable::column_argument(std::size_t column) const {
  const std::string& name = columns[column].name;
  const auto same = std::count_if(columns.begin(), columns.end(),
                                  [&](const TableColumn& each) { return each.name == name; });
  constexpr std::string_view kUnsafe = ",'\\";
  if (name.empty() || same > 1 || printable(name) != name ||
      name.find_first_of(kUnsafe) != std::string::npos) {
    return std::to_string(column);
  }
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return plain ? name : "'" + name + "'";
}

std::optional<std::size_t> DataTable::find(const std::string& name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const TableColumn& each) { return each.name == name; });
  if (name.empty() || found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::string DataTable::place(std::int64_t row) const {
  return lines.empty() ? concat(where, ", row ", row)
                       : concat(where, ", line ", lines[static_cast<std::size_t>(row)]);
}

std::size_t find_column(const DataTable& table, const std::string& text,
                        const std::string& subject) {
  if (const auto named = table.find(text)) {
    std::int64_t same = 0;
    for (const TableColumn& column : table.columns) same += column.name == text;
    check(same == 1, table.where, ": two columns are called \"", text, "\"; give the ", subject,
          " by number");
    return *named;
  }
  const auto columns = static_cast<std::int64_t>(table.columns.size());
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_number = stop == end && error == std::errc();
  if (is_number && number < 0) number += columns;
  if (is_number && number >= 0 && number < columns) return static_cast<std::size_t>(number);
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) names.push_back(column.name);
  fail(table.where, ": no ", subject, " \"", printable(text), "\" among the ", columns, " columns",
       is_number ? concat("; columns are numbers from 0 to ", columns - 1)
       : table.has_names
           ? did_you_mean(text, names)
           : concat("; without a header, columns are numbers from 0 to ", columns - 1));
}

void drop_incomplete_rows(DataTable& table, const ColumnPlaces& columns,
                          const std::string& advice) {
  std::vector<char> kept(static_cast<std::size_t>(table.rows), 1);
  for (std::size_t column : columns) {
    for (std::int64_t row = 0; row < table.rows; ++row) {
      if (table.columns[column].is_missing(row)) kept[static_cast<std::size_t>(row)] = 0;
    }
  }
  const std::int64_t left = std::count(kept.begin(), kept.end(), 1);
  if (left == table.rows) return;
  check(left > 0, table.where, ": each of the ", table.rows, " rows has a missing cell; ", advice);
  table.remarks.notes.push_back(concat(table.rows - left, " of ", table.rows,
                                       left + 1 == table.rows
                                           ? " rows has missing cells and is left out"
                                           : " rows have missing cells and are left out"));
  for (TableColumn& column : table.columns) {
    keep_rows(column.numbers, kept);
    keep_rows(column.codes, kept);
  }
  keep_rows(table.lines, kept);
  for (TableColumn& column : table.columns) column.missing.reset();
  table.rows = left;
}

}  // namespace tritgrad
