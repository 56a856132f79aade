#include "engine/data/table_schema.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::array<const char*, 4> kMissingNames = {"refuse", "mean", "mode", "drop"};

// Returns whether two columns of the training file had the same name.
bool has_repeated_names(const TableSchema& schema) {
  std::unordered_set<std::string_view> names{schema.label};
  return std::any_of(schema.columns.begin(), schema.columns.end(), [&](const TableFeature& each) {
    return !each.name.empty() && !names.insert(each.name).second;
  });
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

ColumnPlaces columns_of(const TableSchema& schema, const DataTable& table) {
  std::unordered_map<std::string_view, std::size_t> place_of;
  std::unordered_set<std::string_view> repeated;
  for (std::size_t place = 0; place < table.columns.size(); ++place) {
    const std::string& name = table.columns[place].name;
    if (!schema.has_names || name.empty()) continue;
    if (!place_of.emplace(name, place).second) repeated.insert(name);
  }
  ColumnPlaces by_name, by_place;
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

}  // namespace tritgrad
