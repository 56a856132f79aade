// Rows by which exports of a model are checked: those that its run held back, or a caller's own.
#pragma once

#include <cstdint>

#include "engine/data/dataset.h"
#include "engine/data/npy.h"
#include "engine/data/split.h"
#include "models/training/saved_run.h"

namespace tritgrad {

// Copies at most a thousand of the rows that a run did not train on, spread over all: test rows,
// else validation rows. Where it held none back, rows of the training. The name of the set, which
// exports quote, tells which they are.
Dataset rows_held_back(const Dataset& dataset, const Split& split);

// What a caller knows of rows, as tg_model_check_rows() takes it; one of them is NULL.
struct KnownAnswers {
  const std::int64_t* classes;
  const double* targets;

  bool are_given() const { return classes != nullptr || targets != nullptr; }
};

// Copies rows for a model. Without answers labels are whatever fits. Throws Error for answers that
// the model cannot give, and for values that it cannot take.
Dataset rows_given(const SavedRun& saved, const NpyArray& values, const KnownAnswers& answers);

}  // namespace tritgrad
