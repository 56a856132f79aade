// What a C header says of the table that a network was trained on: the names of its features, and a
// function that makes features of the cells of a row as data sets do (engine/data/table_schema.h).
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/table_schema.h"

namespace tritgrad {

// Whether a row of cells is something else than its features: there are columns of words, or
// missing cells that are filled.
bool has_encoder(const TableSchema& table);

// Whether the columns are called something; those of arrays are not.
bool has_column_names(const TableSchema& table);

// Returns the enumerations of features and, with has_encoder(), of cells. `capitals` begins all
// names.
std::string c_feature_names(const TableSchema& table, const std::string& capitals);

// These are the tables and the text of the function, in which `$`, `@` and `%` stand for the name
// that all names begin by, its capitals, and the type of features: double where they are `wide`,
// else float.
std::string c_encoder_tables(const TableSchema& table, const std::string& name, bool wide);
extern const char* const kCEncoder;

// Returns the bytes of the tables.
std::int64_t c_encoder_bytes(const TableSchema& table, bool wide);

}  // namespace tritgrad
