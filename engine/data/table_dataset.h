// From a table to a data set: cells become features, and labels numbers of classes.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/table.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

// A described table in, a described data set out. With options.schema rows of one class are enough,
// labels of no class of the model become classes behind its own, and columns are those of the
// schema; else the schema is learned.
Dataset make_dataset(DataTable table, const TableOptions& options);

}  // namespace tritgrad
