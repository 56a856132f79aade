// What a schema learns from the table that a model is trained on: which columns are features, and
// what they hold.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/data/table.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

// Returns the columns that become features, rising: those that the options name, else all but the
// label, those that only tell rows apart, and the last ones if they are empty throughout. Adds the
// others to schema.left_out, and to the table's notes those that no option left out. Throws Error
// where none remains.
ColumnPlaces choose_columns(DataTable& table, const TableOptions& options, TableSchema& schema);

// Takes away, with a note, those of the places, of usable cells, whose cells are all missing.
// Throws Error where none remains.
void leave_out_empty(DataTable& table, ColumnPlaces& places, TableSchema& schema);

// Learns schema.columns from the table's usable cells in `places`. Adds warnings of what numbers
// lose as fp32. Throws Error where a column holds more words than the options allow.
void learn_columns(DataTable& table, const ColumnPlaces& places, const TableOptions& options,
                   TableSchema& schema);

}  // namespace tritgrad
