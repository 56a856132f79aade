#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/data/table_schema.h"
#include "engine/files/json_whole-inl.h"

namespace tritgrad {
namespace {

using SchemaJson = nlohmann::ordered_json;

// Writes name and place of a column, and of the rest what it has.
SchemaJson column_json(const TableFeature& column) {
  SchemaJson json{{"name", column.name}, {"place", column.place}};
  if (!column.words.empty()) json["words"] = column.words;
  if (column.offset != 0.0) json["offset"] = column.offset;
  if (column.has_indicator) json["indicator"] = true;
  if (column.fill_number) json["fill"] = *column.fill_number;
  if (!column.fill_word.empty()) json["fill"] = column.fill_word;
  if (column.missing > 0) json["missing"] = column.missing;
  return json;
}

TableFeature column_from(const SchemaJson& json) {
  TableFeature column;
  column.name = json.at("name").get<std::string>();
  column.place = whole_number<std::int64_t>(json.at("place"));
  column.words = json.value("words", std::vector<std::string>());
  column.offset = json.value("offset", 0.0);
  column.has_indicator = json.value("indicator", false);
  if (json.contains("missing")) column.missing = whole_number<std::int64_t>(json.at("missing"));
  if (json.contains("fill")) {
    if (column.words.empty()) {
      column.fill_number = json.at("fill").get<double>();
    } else {
      column.fill_word = json.at("fill").get<std::string>();
    }
  }
  return column;
}

}  // namespace

std::string to_json(const TableSchema& schema) {
  SchemaJson json{{"header", schema.has_names},        {"label", schema.label},
                  {"label_place", schema.label_place}, {"table_columns", schema.table_columns},
                  {"left_out", schema.left_out},       {"columns", SchemaJson::array()}};
  for (const TableFeature& column : schema.columns) json["columns"].push_back(column_json(column));
  return json.dump();
}

TableSchema schema_from_json(const std::string& text, const std::string& where) {
  TableSchema schema;
  try {
    const SchemaJson json = SchemaJson::parse(text);
    schema.has_names = json.at("header").get<bool>();
    schema.label = json.at("label").get<std::string>();
    schema.label_place = whole_number<std::int64_t>(json.at("label_place"));
    schema.table_columns = whole_number<std::int64_t>(json.at("table_columns"));
    schema.left_out = json.at("left_out").get<std::vector<std::string>>();
    for (const SchemaJson& column : json.at("columns")) {
      schema.columns.push_back(column_from(column));
    }
  } catch (const SchemaJson::exception& error) {
    fail(where, " is no description of a table: ", error.what());
  }
  for (const TableFeature& column : schema.columns) {
    check(std::is_sorted(column.words.begin(), column.words.end()) && column.place >= 0 &&
              (column.place < schema.table_columns || schema.table_columns == 0),
          where, " describes a column '", column.name, "' that cannot be; the file is damaged");
  }
  return schema;
}

}  // namespace tritgrad
