// A table as it was read, before anything is learned from it: columns of numbers and of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

// Numbers of columns, from 0.
using ColumnPlaces = std::vector<std::size_t>;

// A cell as it stands in the file, for a message.
struct TableCell {
  std::int64_t row;
  std::string text;
};

struct TableColumn {
  std::string name;  // empty: none
  bool holds_words = false;
  bool is_empty = false;            // no cell of it holds a character
  std::vector<double> numbers;      // NaN: the cell is missing
  std::vector<std::int32_t> codes;  // places in `words`; -1: the cell is missing
  std::vector<std::string> words;   // each once
  // The first cell that is missing, and the first that is not what the column holds: a number that
  // fp32 has no room for, or a word among numbers.
  std::optional<TableCell> missing, unusable;

  bool is_missing(std::int64_t row) const;
};

struct DataTable {
  std::string where;  // names the source in messages
  std::vector<TableColumn> columns;
  std::size_t label = 0;  // the column of classes
  bool has_names = false;
  std::int64_t rows = 0;
  DataVector<std::int64_t> lines;  // of rows in the text; empty where there is none
  Remarks remarks;

  // The name of a column: "column 3" where it has none.
  std::string column_name(std::size_t column) const;
  // A column as options name it, quoted for a shell where it must be.
  std::string column_argument(std::size_t column) const;
  // The first column that is called so; nothing where no name is the same.
  std::optional<std::size_t> find(const std::string& name) const;
  // "t.csv, line 3": where a row stands, to begin a message.
  std::string place(std::int64_t row) const;
};

// The column that is meant by a name or by a number counted from 0 (negative: from the end). A name
// wins. Throws Error that begins with `subject` for none.
std::size_t find_column(const DataTable& table, const std::string& text,
                        const std::string& subject);

// Takes away the rows in which one of these columns, of usable cells, is missing. Throws Error that
// ends in `advice` where no row is left.
void drop_incomplete_rows(DataTable& table, const ColumnPlaces& columns, const std::string& advice);

}  // namespace tritgrad
