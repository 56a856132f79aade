#include "models/export/c_encoder.h"

#include <algorithm>
#include <limits>

#include "models/export/c_text.h"

namespace tritgrad {
namespace {

// A list for each table of the function, with a number for each column.
struct EncoderTables {
  std::vector<std::uint32_t> words;  // of the column; 0: it holds numbers
  std::vector<std::uint8_t>
      has_indicator;          // one more feature, which is 1 where the cell is missing
  std::vector<double> fills;  // what stands for a missing cell; NaN: nothing does

  explicit EncoderTables(const TableSchema& table) {
    std::int64_t at = 0;
    for (const TableFeature& column : table.columns) {
      words.push_back(static_cast<std::uint32_t>(column.words.size()));
      has_indicator.push_back(column.has_indicator ? 1 : 0);
      const auto found = std::find(column.words.begin(), column.words.end(), column.fill_word);
      double fill = column.fill_number.value_or(std::numeric_limits<double>::quiet_NaN());
      if (found != column.words.end()) {
        fill = static_cast<double>(at + (found - column.words.begin()));
      }
      fills.push_back(fill);
      at += column.width();
    }
  }
};

std::string enumeration(const std::string& beginning, const std::vector<std::string>& texts) {
  std::vector<std::string> names = c_name_endings(texts);
  for (std::string& name : names) name = beginning + name;
  std::string list = c_list(names);
  list.erase(list.rfind(','), 1);  // C90 and C++98 want none behind the last one
  return "enum {\n" + list + "};\n";
}

}  // namespace

const char* const kCEncoder = R"(
/* Makes features of the cells of a row. A cell of numbers is the number itself, a cell of words the
   number of its feature (@_IN_...), or @_UNKNOWN_WORD; a missing cell is NAN. */
static inline void $_encode(const % cells[@_CELLS], % features[@_INPUTS]) {
  int c, i, at = 0;
  for (c = 0; c < @_CELLS; c++) {
    int words = (int)$_words[c], is_missing = cells[c] != cells[c];
    % cell = is_missing ? $_fill[c] : cells[c];
    if (words == 0) features[at++] = cell;
    for (i = 0; i < words; i++, at++) features[at] = cell != cell ? cell : cell == (%)at;
    if ($_has_indicator[c]) features[at++] = (%)is_missing;
  }
}
)";

bool has_encoder(const TableSchema& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [](const TableFeature& column) {
    return !column.words.empty() || column.has_indicator || column.fill_number;
  });
}

bool has_column_names(const TableSchema& table) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [](const TableFeature& column) { return !column.name.empty(); });
}

std::string c_feature_names(const TableSchema& table, const std::string& capitals) {
  std::string text =
      "\n/* features by number */\n" + enumeration(capitals + "_IN_", table.feature_names());
  if (!has_encoder(table)) return text;
  std::vector<std::string> columns;
  for (const TableFeature& column : table.columns) columns.push_back(column.name);
  return text + "\n/* cells of a row by number */\n" + enumeration(capitals + "_CELL_", columns) +
         concat("enum { ", capitals, "_CELLS = ", columns.size(), ", ", capitals,
                "_UNKNOWN_WORD = -1 };\n");
}

std::string c_encoder_tables(const TableSchema& table, const std::string& name, bool wide) {
  const EncoderTables tables(table);
  const std::string flash = upper_case(name) + "_FLASH ";
  return concat(
      "\n/* columns: their words (0: numbers), whether a feature says that a cell is "
      "missing, what fills it */\n",
      c_table(flash + "uint32_t", name + "_words", tables.words),
      c_table(flash + "uint8_t", name + "_has_indicator", tables.has_indicator),
      wide ? c_table(flash + "double", name + "_fill", tables.fills)
           : c_table(flash + "float", name + "_fill",
                     std::vector<float>(tables.fills.begin(), tables.fills.end())));
}

std::int64_t c_encoder_bytes(const TableSchema& table, bool wide) {
  const std::size_t fill = wide ? sizeof(double) : sizeof(float);
  return std::ssize(table.columns) *
         static_cast<std::int64_t>(sizeof(std::uint32_t) + sizeof(std::uint8_t) + fill);
}

}  // namespace tritgrad
