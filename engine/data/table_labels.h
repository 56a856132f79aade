// The label column of a table as classes, or as the targets of regression.
#pragma once

#include "engine/data/dataset.h"
#include "engine/data/table.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

// Sets labels and class_names, or targets, as options.task says. Adds to the table's remarks where
// kAuto decides about numbers, and where targets to learn have outliers. Throws Error for a label
// that is missing, and for one that is no number among targets.
void write_labels(DataTable& table, const TableOptions& options, Dataset& dataset);

}  // namespace tritgrad
