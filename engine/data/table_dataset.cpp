#include "engine/data/table_dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/learned_schema.h"
#include "engine/data/table_labels.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

void check_usable(const DataTable& table, const ColumnPlaces& places, bool knows_columns) {
  for (std::size_t place : places) {
    const TableColumn& column = table.columns[place];
    if (!column.unusable) continue;
    const auto& [row, text] = *column.unusable;
    double number = 0.0;
    const CellKind kind = classify_cell(text, number);
    const std::string option = table.column_argument(place);
    std::string advice;
    if (kind == CellKind::kNumber) {
      advice += ", numbers up to 3.4e38 expected; ";
    } else if (kind != CellKind::kMiswritten) {
      advice += ", numbers expected; ";
    }
    if (kind == CellKind::kMiswritten) advice += ", or ";
    if (row == 0 && !table.has_names) {
      advice += "if the first line holds names, say that there is a header (--header yes); else ";
    }
    if (kind != CellKind::kMiswritten) advice += "mend or remove the row";
    if (!knows_columns) {
      advice += kind == CellKind::kMiswritten ? "" : ", ";
      advice += "leave the column out (--drop " + option + ")";
      if (kind != CellKind::kNumber) {
        advice += ", or take all its cells for words (--words " + option + ")";
      }
    } else if (kind == CellKind::kMiswritten) {
      advice += "remove the row";
    }
    fail(table.place(row), ", ", table.column_name(place), ": ", cell_fault(text), advice);
  }
}

// `schema`: of a model, or null.
void check_complete(const DataTable& table, const ColumnPlaces& places, const TableSchema* schema) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TableColumn& column = table.columns[places[i]];
    if (!column.missing) continue;
    const auto& [row, text] = *column.missing;
    fail(table.place(row), ", ", table.column_name(places[i]), ": ",
         text.empty() ? "the cell is empty" : quoted_cell(text) + " stands for a missing cell",
         column.holds_words ? ", words expected" : ", numbers expected",
         "; fill or remove the row, or say what becomes of missing cells: --missing ",
         schema == nullptr || schema->knows_fills() ? "mean, mode or drop" : "mean or drop");
  }
}

// Says how many cells of which columns are filled, `places` being those of the schema's columns.
void note_filled(DataTable& table, const ColumnPlaces& places, const TableSchema& schema,
                 MissingCells missing) {
  std::vector<std::string> filled;
  bool have_indicators = true;
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::int64_t cells = 0;
    for (std::int64_t row = 0; row < table.rows; ++row) {
      cells += table.columns[places[i]].is_missing(row);
    }
    if (cells == 0) continue;
    filled.push_back(concat(schema.columns[i].name, " (", cells, ")"));
    have_indicators = have_indicators && schema.columns[i].has_indicator;
  }
  if (filled.empty()) return;
  table.remarks.notes.push_back(
      concat("missing cells are filled by the ", to_text(missing),
             have_indicators ? ", and one more feature says where: " : ": ", enumerated(filled)));
}

// Writes the features of one column, the first of which is number `at`.
class FeatureWriter {
 public:
  FeatureWriter(const DataTable& table, std::size_t place, const TableFeature& feature,
                MissingCells missing)
      : column_(table.columns[place]), feature_(feature), missing_(missing) {
    check(column_.holds_words == !feature.words.empty(), table.where, ": column '",
          table.column_name(place), "' holds ", column_.holds_words ? "words" : "numbers",
          ", but the model learned ", column_.holds_words ? "numbers" : "words");
    for (const std::string& word : column_.words) {
      const auto found = std::lower_bound(feature.words.begin(), feature.words.end(), word);
      const bool known = found != feature.words.end() && *found == word;
      place_of_.push_back(known ? static_cast<std::int32_t>(found - feature.words.begin()) : -1);
    }
    const auto fill = std::find(feature.words.begin(), feature.words.end(), feature.fill_word);
    fill_place_ = fill == feature.words.end() ? -1 : static_cast<int>(fill - feature.words.begin());
    const bool has_fill = feature.fill_number.has_value() || fill_place_ >= 0;
    check(missing != MissingCells::kMode || has_fill || !column_.missing, table.where,
          ": the model has learned no most frequent value of column '", table.column_name(place),
          "'; say --missing mean or drop");
  }

  void write(std::int64_t row, float* out) {
    const bool is_missing = column_.is_missing(row);
    const std::int64_t width = feature_.width() - (feature_.has_indicator ? 1 : 0);
    if (feature_.has_indicator) out[width] = is_missing ? 1.0f : 0.0f;
    if (is_missing && missing_ != MissingCells::kMode) {
      std::fill_n(out, width, std::numeric_limits<float>::quiet_NaN());
      has_missing_ = true;
    } else if (column_.holds_words) {
      write_word(row, is_missing, out);
    } else {
      const double number =
          is_missing ? *feature_.fill_number : column_.numbers[static_cast<std::size_t>(row)];
      *out = static_cast<float>(number - feature_.offset);
    }
  }

  bool has_missing() const { return has_missing_; }
  // Cells with words that the model does not know, and one of them.
  std::int64_t unknown() const { return unknown_; }
  const std::string& unknown_word() const { return unknown_word_; }

 private:
  void write_word(std::int64_t row, bool is_missing, float* out) {
    int place = fill_place_;
    if (!is_missing) {
      const auto code = static_cast<std::size_t>(column_.codes[static_cast<std::size_t>(row)]);
      place = place_of_[code];
      if (place < 0 && unknown_++ == 0) unknown_word_ = column_.words[code];
    }
    if (place >= 0) out[place] = 1.0f;  // the others are 0 from the beginning
  }

  const TableColumn& column_;
  const TableFeature& feature_;
  MissingCells missing_;
  std::vector<std::int32_t> place_of_;  // of the table's words among the model's; -1: unknown
  int fill_place_ = -1;
  bool has_missing_ = false;
  std::int64_t unknown_ = 0;
  std::string unknown_word_;
};

void write_features(DataTable& table, const ColumnPlaces& places, const TableSchema& schema,
                    MissingCells missing, Dataset& dataset) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    FeatureWriter writer(table, places[i], schema.columns[i], missing);
    float* out = dataset.values.as<float>() + at;
    for (std::int64_t row = 0; row < table.rows; ++row) {
      writer.write(row, out + row * dataset.features);
    }
    at += schema.columns[i].width();
    dataset.has_missing = dataset.has_missing || writer.has_missing();
    if (writer.unknown() == 0) continue;
    table.remarks.warnings.push_back(
        concat(table.where, ": ", writer.unknown(), " of ", table.rows, " cells of column '",
               table.column_name(places[i]), writer.unknown() == 1 ? "' holds" : "' hold",
               " words that the model does not know, such as ", quoted_cell(writer.unknown_word()),
               "; it reads them as none of its words"));
  }
}

// No treatment of missing cells finds a label for any row.
void check_any_label(const DataTable& table, bool knows_columns) {
  const TableColumn& column = table.columns[table.label];
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (!column.is_missing(row)) return;
  }
  fail(table.where, ": no row has a label, as column '", table.column_name(table.label),
       "' is empty throughout; name the column that holds classes by --label",
       knows_columns || column.missing->text.empty()
           ? ""
           : ", or, if what stands there are classes, say --words " +
                 table.column_argument(table.label));
}

// `schema`: of a model, or null.
void drop_rows(DataTable& table, ColumnPlaces columns, const TableSchema* schema) {
  std::string advice = schema == nullptr ? "leave the emptiest columns out by --drop" : "";
  if (!table.columns[table.label].missing) {
    advice += schema == nullptr ? ", or fill them by --missing " : "fill them by --missing ";
    advice += schema == nullptr || schema->knows_fills() ? "mean or mode" : "mean";
  } else if (schema != nullptr) {
    advice = "give rows that have their labels and all cells";
  }
  columns.push_back(table.label);
  drop_incomplete_rows(table, columns, advice);
}

// Different values of a column, or a number above `most`.
std::size_t different_values(const TableColumn& column, std::size_t most) {
  if (column.holds_words) return column.words.size();
  std::vector<double> seen;
  for (double x : column.numbers) {
    if (std::find(seen.begin(), seen.end(), x) != seen.end()) continue;
    seen.push_back(x);
    if (seen.size() > most) break;
  }
  return seen.size();
}

// The label is the last column unless a person says otherwise. Many files have it first.
void hint_at_label(DataTable& table, const TableOptions& options) {
  constexpr std::size_t kMost = 20;
  if (!options.label.empty() || table.label == 0) return;
  const TableColumn& first = table.columns[0];
  const std::size_t values = different_values(first, kMost);
  const TableColumn& last = table.columns[table.label];
  const bool last_is_word = std::any_of(last.words.begin(), last.words.end(),
                                        [](const std::string& w) { return !parse_number(w); });
  const bool candidate = values == 2 || (first.holds_words && values <= kMost);
  if (values < 2 || !candidate || last_is_word) return;
  table.remarks.notes.push_back(concat("the last column, '", table.column_name(table.label),
                                       "', is taken for the label; if that is the first, '",
                                       table.column_name(0), "', say --label ",
                                       table.column_argument(0)));
}

void warn_of_names(const TableSchema& schema, const ColumnPlaces& places, DataTable& table) {
  if (!table.has_names || !schema.has_names) return;
  std::vector<std::string> names;
  for (const TableFeature& feature : schema.columns) names.push_back(feature.name);
  if (!places.empty() && table.columns[places[0]].name == names[0]) return;
  table.remarks.warnings.push_back(
      concat(table.where, ": its columns have other names than the model's (", enumerated(names),
             ") and are taken in the order in which they stand, with '",
             table.column_name(table.label), "' as the label"));
}

void warn_of_repeated_names(DataTable& table) {
  std::set<std::string> names;
  for (const TableColumn& column : table.columns) {
    if (column.name.empty() || names.insert(column.name).second) continue;
    table.remarks.warnings.push_back(concat(table.where, ": two columns are called '",
                                            printable(column.name),
                                            "'; options tell them apart by numbers from 0"));
  }
}

}  // namespace

Dataset make_dataset(DataTable table, const TableOptions& options) {
  TableSchema schema;
  ColumnPlaces places;
  if (options.schema != nullptr) {
    schema = *options.schema;
    places = columns_of(schema, table);
    warn_of_names(schema, places, table);
  } else {
    warn_of_repeated_names(table);
    places = choose_columns(table, options, schema);
  }
  check_any_label(table, options.schema != nullptr);
  check_usable(table, places, options.schema != nullptr);
  if (options.missing == MissingCells::kRefuse) check_complete(table, places, options.schema);
  if (options.schema == nullptr) leave_out_empty(table, places, schema);
  if (options.missing == MissingCells::kDrop) drop_rows(table, places, options.schema);
  if (options.schema == nullptr) {
    learn_columns(table, places, options, schema);
    schema.has_names = table.has_names;
    schema.label_place = static_cast<std::int64_t>(table.label);
    schema.table_columns = std::ssize(table.columns);
    schema.label = table.has_names ? table.columns[table.label].name : "";
  }
  note_filled(table, places, schema, options.missing);
  Dataset dataset;
  dataset.name = table.where;
  dataset.allocate(table.rows, schema.features(), Element::kFloat32);
  dataset.feature_names = schema.feature_names();
  write_features(table, places, schema, options.missing, dataset);
  write_labels(table, options, dataset);
  if (options.schema == nullptr) {
    schema.class_names = dataset.class_names;
    hint_at_label(table, options);
  }
  dataset.schema = std::make_shared<const TableSchema>(std::move(schema));
  dataset.remarks = std::move(table.remarks);
  dataset.lines = std::move(table.lines);
  return dataset;
}

}  // namespace tritgrad
