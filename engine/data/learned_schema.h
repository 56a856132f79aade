// What a schema learns from the table that a model is trained on: which columns are features, and
// what they hold.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/data/table.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

// Returns the columns that become features, rising: those that the options name, else all but the
// label and those that only tell rows apart. Adds the others to schema.left_out, and to the table's
// notes those that no option left out. Throws Error where none remains.
ColumnPlaces choose_columns(DataTable& table, const TableOptions& options, TableSchema& schema);

// Learns schema.columns from the table's usable cells in `places`. Leaves out, with a note, columns
// that are empty throughout; the rest are `used`. Adds warnings of what numbers lose as fp32.
// Throws Error where all are empty, or one holds more words than the options allow.
void learn_columns(DataTable& table, const ColumnPlaces& places, const TableOptions& options,
                   TableSchema& schema, ColumnPlaces& used);

}  // namespace tritgrad
