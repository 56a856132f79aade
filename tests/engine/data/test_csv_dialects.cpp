// Random tables, written as people and programs write them, are read as what they are.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "engine/random.h"
#include "engine/text.h"

namespace tritgrad::test::test_csv_dialects {
namespace {

// Small numbers at random, a function of the case.
class Draws {
 public:
  explicit Draws(std::uint32_t number) : key_{11, random_stream("dialects"), number} {}
  int below(int n) {
    return static_cast<int>(random_below(key_, count_++, static_cast<std::uint32_t>(n)));
  }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  RandomKey key_;
  std::uint64_t count_ = 0;
};

struct Dialect {
  char separator;
  std::string line_end;
  bool header, quotes, blanks, ends_in_separator, byte_order_mark, last_line_end;
};

struct Column {
  std::string name;
  bool words;
  std::vector<std::string> cells;  // "": missing
};

Dialect draw_dialect(Draws& draws) {
  return {draws.of<char>({',', ';', '\t'}),
          draws.of<std::string>({"\n", "\r\n", "\r"}),
          draws.below(2) == 0,
          draws.below(3) == 0,
          draws.below(3) == 0,
          draws.below(4) == 0,
          draws.below(4) == 0,
          draws.below(3) != 0};
}

std::string draw_number(Draws& draws) {
  const int whole = draws.below(200001) - 100000;
  const double value = whole;
  switch (draws.below(4)) {
    case 0:
      return number_text(value / 1000);
    case 1:
      return std::to_string(whole) + "e-3";
    case 2:
      return "+" + number_text(std::abs(value));
    default:
      return number_text(value);
  }
}

std::vector<Column> draw_columns(Draws& draws, int rows) {
  const std::vector<std::string> words = {"red", "gr\u00FCn",  "two words", "a,b",
                                          "a;b", "say \"so\"", "x\ny"};
  std::vector<Column> columns(static_cast<std::size_t>(2 + draws.below(5)));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].name = "c " + std::to_string(i);
    columns[i].words = i > 0 && draws.below(2) == 0;
    for (int row = 0; row < rows; ++row) {
      const bool missing = row > 2 && draws.below(6) == 0;
      columns[i].cells.push_back(missing            ? ""
                                 : columns[i].words ? draws.of(words)
                                                    : draw_number(draws));
    }
  }
  return columns;
}

std::string written(const std::string& cell, const Dialect& dialect, Draws& draws) {
  const bool must = cell.find_first_of(",;\t\"\n\r") != std::string::npos;
  std::string text = cell;
  if (must || dialect.quotes) {
    text = "\"";
    for (char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
    text += "\"";
  }
  return dialect.blanks && draws.below(2) == 0 ? " " + text + "  " : text;
}

std::string write(const std::vector<Column>& columns, const std::vector<std::string>& labels,
                  std::size_t label_at, const Dialect& dialect, Draws& draws) {
  std::string text = dialect.byte_order_mark ? "\xEF\xBB\xBF" : "";
  const auto line = [&](const auto& cell_of, const std::string& label) {
    for (std::size_t i = 0; i <= columns.size(); ++i) {
      if (i > 0) text += dialect.separator;
      if (i == label_at) text += written(label, dialect, draws);
      if (i > label_at) text += written(cell_of(columns[i - 1]), dialect, draws);
      if (i < label_at) text += written(cell_of(columns[i]), dialect, draws);
    }
    if (dialect.ends_in_separator) text += dialect.separator;
    text += dialect.line_end;
  };
  if (dialect.header) line([](const Column& column) { return column.name; }, "label");
  const std::vector<std::string> markers = {"", "?", "NA", "nan", "NULL"};
  for (std::size_t row = 0; row < labels.size(); ++row) {
    line(
        [&](const Column& column) {
          return column.cells[row].empty() ? draws.of(markers) : column.cells[row];
        },
        labels[row]);
  }
  if (!dialect.last_line_end) text.resize(text.size() - dialect.line_end.size());
  return text;
}

void check_column(const DataTable& table, std::size_t at, const Column& wanted) {
  const TableColumn& found = table.columns[at];
  REQUIRE(found.holds_words == wanted.words);
  for (std::size_t row = 0; row < wanted.cells.size(); ++row) {
    CAPTURE(row);
    const auto number = static_cast<std::int64_t>(row);
    REQUIRE(found.is_missing(number) == wanted.cells[row].empty());
    if (wanted.cells[row].empty()) continue;
    if (wanted.words) {
      CHECK(found.words[static_cast<std::size_t>(found.codes[row])] == wanted.cells[row]);
    } else {
      CHECK(found.numbers[row] == parse_number(wanted.cells[row]).value());
    }
  }
}

}  // namespace

TEST_CASE("csv dialects: a random table is read back, value by value, from any dialect") {
  for (std::uint32_t number = 0; number < 400; ++number) {
    CAPTURE(number);
    Draws draws(number);
    const Dialect dialect = draw_dialect(draws);
    const int rows = 8 + draws.below(8);
    const std::vector<Column> columns = draw_columns(draws, rows);
    std::vector<std::string> labels;
    for (int row = 0; row < rows; ++row) labels.push_back(row % 2 == 0 ? "yes" : "no");
    const auto label_at =
        static_cast<std::size_t>(draws.below(static_cast<int>(columns.size()) + 1));
    const std::string text = write(columns, labels, label_at, dialect, draws);
    CAPTURE(text);
    CsvOptions options;
    options.label = std::to_string(label_at);
    const DataTable table = parse_csv_table(text, "t.csv", options);
    REQUIRE(table.rows == rows);
    REQUIRE(table.columns.size() == columns.size() + 1);
    CHECK(table.has_names == dialect.header);
    CHECK(table.label == label_at);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      CAPTURE(i);
      const std::size_t at = i < label_at ? i : i + 1;
      CHECK(table.columns[at].name == (dialect.header ? columns[i].name : ""));
      check_column(table, at, columns[i]);
    }
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const TableColumn& label = table.columns[label_at];
      CHECK(label.words[static_cast<std::size_t>(label.codes[row])] == labels[row]);
    }
    // A data set of them has every row, and no number that is not finite but where one is missing.
    options.missing = MissingCells::kMean;
    const Dataset data = parse_csv(text, "t.csv", options);
    CHECK(data.rows == rows);
  }
}

}  // namespace tritgrad::test::test_csv_dialects
