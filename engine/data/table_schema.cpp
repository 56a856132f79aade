#include "engine/data/table_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/column_statistics.h"
#include "engine/data/label_encoder.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::array<const char*, 4> kMissingNames = {"refuse", "mean", "mode", "drop"};

// A table from so many rows on is large enough that a column of as many values tells rows apart.
constexpr std::int64_t kFewestOfIdentifier = 10;

using Places = std::vector<std::size_t>;

// "a, b and 3 more".
std::string enumerated(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  return text + (names.size() > kMost ? concat(" and ", names.size() - kMost, " more") : "");
}

Places places_of(const DataTable& table, const std::vector<std::string>& names,
                 const std::string& option) {
  Places places;
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

bool holds(const Places& places, std::size_t place) {
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

// The columns that become features, as the options and the cells say.
Places choose_columns(DataTable& table, const TableOptions& options, TableSchema& schema) {
  const Places wanted = places_of(table, options.columns, "--columns"),
               unwanted = places_of(table, options.drop, "--drop");
  Places chosen, identifiers;
  for (std::size_t place = 0; place < table.columns.size(); ++place) {
    if (place == table.label) continue;
    if (holds(unwanted, place) || (!wanted.empty() && !holds(wanted, place))) {
      schema.left_out.push_back(table.column_name(place));
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
        ": no column is left to learn from; name features by --columns");
  return chosen;
}

void check_usable(const DataTable& table, const Places& places, bool knows_columns) {
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
void check_complete(const DataTable& table, const Places& places, const TableSchema* schema) {
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

// ---- Learning ----

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

void learn_columns(DataTable& table, const Places& places, const TableOptions& options,
                   TableSchema& schema, Places& used) {
  for (std::size_t place : places) {
    const TableColumn& column = table.columns[place];
    TableFeature feature;
    feature.place = static_cast<std::int64_t>(place);
    feature.name = table.has_names ? column.name : table.column_name(place);
    for (std::int64_t row = 0; row < table.rows; ++row) feature.missing += column.is_missing(row);
    if (feature.missing == table.rows) {
      schema.left_out.push_back(table.column_name(place));
      table.remarks.notes.push_back(
          concat("column '", table.column_name(place), "' is empty throughout and is left out"));
      continue;
    }
    feature.has_indicator = options.missing == MissingCells::kMean && feature.missing > 0;
    column.holds_words ? learn_words(table, place, options, feature)
                       : learn_numbers(table, place, options, feature);
    schema.columns.push_back(std::move(feature));
    used.push_back(place);
  }
  check(!used.empty(), table.where, ": every column is empty throughout; nothing can be learned");
}

// Says how many cells of which columns are filled, `places` being those of the schema's columns.
void note_filled(DataTable& table, const Places& places, const TableSchema& schema,
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

// ---- Features ----

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

void write_features(DataTable& table, const Places& places, const TableSchema& schema,
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

void write_labels(const DataTable& table, const TableOptions& options, Dataset& dataset) {
  const TableColumn& column = table.columns[table.label];
  LabelEncoder labels(table.where, "name the column that holds classes by --label");
  for (std::int64_t row = 0; row < table.rows; ++row) {
    if (column.is_missing(row)) fail_for_missing_label(table, row, options.schema != nullptr);
    const auto at = static_cast<std::size_t>(row);
    const std::string text = column.holds_words
                                 ? column.words[static_cast<std::size_t>(column.codes[at])]
                                 : number_text(column.numbers[at]);
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

// ---- A label column that was not named ----

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

}  // namespace

MissingCells parse_missing(const std::string& text) {
  const auto found = std::find(kMissingNames.begin(), kMissingNames.end(), text);
  check(found != kMissingNames.end(), "--missing: '", printable(text),
        "' found, refuse, mean, mode or drop expected");
  return static_cast<MissingCells>(found - kMissingNames.begin());
}

const char* to_text(MissingCells missing) {
  return kMissingNames[static_cast<std::size_t>(missing)];
}

std::int64_t TableFeature::width() const {
  return std::max<std::int64_t>(1, std::ssize(words)) + (has_indicator ? 1 : 0);
}

std::int64_t TableSchema::features() const {
  std::int64_t features = 0;
  for (const TableFeature& column : columns) features += column.width();
  return features;
}

bool TableSchema::knows_fills() const {
  return std::all_of(columns.begin(), columns.end(), [](const TableFeature& column) {
    return column.fill_number.has_value() || !column.fill_word.empty();
  });
}

std::vector<std::string> TableSchema::feature_names() const {
  std::vector<std::string> names;
  for (const TableFeature& column : columns) {
    if (column.words.empty()) names.push_back(column.name);
    for (const std::string& word : column.words) names.push_back(column.name + "=" + word);
    if (column.has_indicator) names.push_back(column.name + " is missing");
  }
  return names;
}

std::string TableSchema::summary() const {
  const auto words = std::count_if(columns.begin(), columns.end(),
                                   [](const TableFeature& each) { return !each.words.empty(); });
  const auto filled = std::count_if(columns.begin(), columns.end(),
                                    [](const TableFeature& each) { return each.missing > 0; });
  std::string text = label.empty() ? concat("label in column ", label_place)
                                   : concat("label '", printable(label), "'");
  const auto numbers = std::ssize(columns) - words;
  if (numbers > 0) text += "; " + counted(numbers, "column") + " of numbers";
  if (words > 0) {
    text += numbers > 0 ? concat(", ", words) : "; " + counted(words, "column");
    text += " of words";
  }
  if (filled > 0) text += concat(", ", filled, " with missing cells");
  if (!left_out.empty()) text += concat(", ", left_out.size(), " left out");
  return text;
}

namespace {

// Returns whether two columns of the training file had the same name.
bool has_repeated_names(const TableSchema& schema) {
  std::unordered_set<std::string_view> names{schema.label};
  return std::any_of(schema.columns.begin(), schema.columns.end(), [&](const TableFeature& each) {
    return !each.name.empty() && !names.insert(each.name).second;
  });
}

}  // namespace

std::vector<std::size_t> columns_of(const TableSchema& schema, const DataTable& table) {
  std::unordered_map<std::string_view, std::size_t> place_of;
  std::unordered_set<std::string_view> repeated;
  for (std::size_t place = 0; place < table.columns.size(); ++place) {
    const std::string& name = table.columns[place].name;
    if (!schema.has_names || name.empty()) continue;
    if (!place_of.emplace(name, place).second) repeated.insert(name);
  }
  Places by_name, by_place;
  std::vector<std::string> lacking;
  bool unclear = false;
  const bool was_unclear = has_repeated_names(schema);
  for (const TableFeature& feature : schema.columns) {
    const auto place = static_cast<std::size_t>(feature.place);
    const auto found = place_of.find(feature.name);
    unclear = unclear || repeated.contains(feature.name);
    check(!unclear || was_unclear, table.where, ": two columns are called '",
          printable(feature.name), "', which the model reads; rename one of them");
    if (found != place_of.end()) {
      check(found->second != table.label || unclear, table.where, ": column '",
            printable(feature.name),
            "' is a feature of the model and cannot be the label; name another by --label");
      by_name.push_back(found->second);
    } else if (schema.has_names && feature.name.empty() && place < table.columns.size() &&
               table.columns[place].name.empty()) {
      by_name.push_back(place);  // a column without a name among others
    } else {
      lacking.push_back(feature.name);
    }
  }
  if (lacking.empty() && !unclear) return by_name;
  if (!by_name.empty() && !unclear) {
    std::vector<std::string> names;
    for (const TableColumn& column : table.columns) names.push_back(column.name);
    const bool one = lacking.size() == 1;
    fail(table.where, ": the model's ", one ? "column " : "columns ", enumerated(lacking),
         one ? " is" : " are", " not there", did_you_mean(lacking[0], names), "; add or rename ",
         one ? "it" : "them");
  }
  // Without names in common, or with some twice, columns are those at the same place of a table of
  // the same width, or all but the label.
  const bool same_places = std::ssize(table.columns) == schema.table_columns &&
                           static_cast<std::int64_t>(table.label) == schema.label_place;
  if (same_places) {
    for (const TableFeature& feature : schema.columns) {
      by_place.push_back(static_cast<std::size_t>(feature.place));
    }
  }
  for (std::size_t place = 0; !same_places && place < table.columns.size(); ++place) {
    if (place != table.label) by_place.push_back(place);
  }
  check(by_place.size() == schema.columns.size(), table.where, ": ",
        counted(std::ssize(by_place), "column"), " of features found, but the model has ",
        schema.columns.size(),
        schema.has_names && !lacking.empty() ? concat(", called ", enumerated(lacking)) : "");
  return by_place;
}

namespace {

void warn_of_names(const TableSchema& schema, const Places& places, DataTable& table) {
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
  Places places;
  if (options.schema != nullptr) {
    schema = *options.schema;
    places = columns_of(schema, table);
    warn_of_names(schema, places, table);
  } else {
    warn_of_repeated_names(table);
    places = choose_columns(table, options, schema);
  }
  check_usable(table, places, options.schema != nullptr);
  if (options.missing == MissingCells::kRefuse) check_complete(table, places, options.schema);
  if (options.missing == MissingCells::kDrop) {
    Places all = places;
    all.push_back(table.label);
    drop_incomplete_rows(table, all);
  }
  if (options.schema == nullptr) {
    Places used;
    learn_columns(table, places, options, schema, used);
    places = std::move(used);
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
  return dataset;
}

}  // namespace tritgrad
