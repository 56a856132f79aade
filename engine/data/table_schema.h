// A schema is what a model knows of its table: classes, if it tells any, and how a row of cells
// becomes features.
//
// It is learned from the file that a model is trained on, kept in its checkpoints, and applied to
// every other file, whose columns are found by name. A column of numbers is one feature; one of
// words is a feature for each word (1 where the cell holds it, else 0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/table.h"
#include "engine/data/task_kind.h"

namespace tritgrad {

// The ways to treat a missing cell.
enum class MissingCells {
  kRefuse,
  kMean,  // the mean of the training rows in each feature, and one more feature that is 1 there
  kMode,  // the most frequent number or word of the training file
  kDrop,  // its row is left out
};

// "refuse", "mean", "mode" or "drop"; parsing throws Error on anything else.
MissingCells parse_missing(const std::string& text);
const char* to_text(MissingCells missing);

struct TableFeature {
  std::string name;                // of the column; "column 3" where the file has no names
  std::vector<std::string> words;  // sorted; empty: the column holds numbers
  double offset = 0.0;             // subtracted from numbers in double, as fp32 would lose digits
  bool has_indicator = false;      // one more feature, which is 1 where the cell is missing
  std::optional<double> fill_number;  // with kMode
  std::string fill_word;              // with kMode; empty: none
  std::int64_t missing = 0;           // cells of the training file
  std::int64_t place = 0;             // number of the column in that file, from 0

  // Features that it becomes.
  std::int64_t width() const;
  friend bool operator==(const TableFeature&, const TableFeature&) = default;
};

struct TableSchema {
  bool has_names = false;                // features were called by a header line
  std::string label;                     // the name of the label column; empty: none
  std::int64_t label_place = 0;          // its number in the training file
  std::int64_t table_columns = 0;        // of the training file, all of them
  std::vector<std::string> class_names;  // as the training file writes them
  std::vector<TableFeature> columns;
  std::vector<std::string> left_out;

  std::int64_t features() const;
  std::vector<std::string> feature_names() const;
  // Whether every column has a most frequent value, as kMode learns it.
  bool knows_fills() const;
  // "label 'income'; 6 columns of numbers, 8 of words, 2 left out".
  std::string summary() const;
  friend bool operator==(const TableSchema&, const TableSchema&) = default;
};

// How a table is understood.
struct TableOptions {
  // The label column: a name, or a number counted from 0 (negative: from the end). A name wins over
  // a number; empty means the last column.
  std::string label;
  TaskKind task = TaskKind::kAuto;  // kAuto with a `schema`: its classes
  // The classes in order; empty: found in the data (engine/data/label_encoder.h).
  std::vector<std::string> class_names;
  MissingCells missing = MissingCells::kRefuse;
  std::int64_t max_categories = 64;     // of a column of words
  std::vector<std::string> columns;     // features, by name or number; empty: all
  std::vector<std::string> drop;        // columns that are no features
  std::vector<std::string> words;       // columns whose numbers are words, such as codes
  const TableSchema* schema = nullptr;  // of a model that knows its columns and classes
};

// The table's columns that the features of a model are, in its order: by name, or, where no name is
// known, by place. Throws Error for those that are missing.
ColumnPlaces columns_of(const TableSchema& schema, const DataTable& table);

// The schema as JSON, and back. Throws Error that begins with `where` for other texts.
std::string to_json(const TableSchema& schema);
TableSchema schema_from_json(const std::string& text, const std::string& where);

}  // namespace tritgrad
