// Data sets as NumPy arrays: features x.npy and labels y.npy, or both in one archive .npz.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/npy.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

// The files of some rows.
struct NpyPair {
  std::string_view x, y;
  std::string x_where, y_where;  // names of the sources, for messages
};

// x: [n x d], or [n x height x width] of uint8 for images; uint8 stays one byte. y: one label per
// row, whatever axes of length 1 it has: integers, floats that are integers, or texts. Classes are
// in the order of engine/data/label_encoder.h. Joins one pair or two (training rows, then the
// published test set, whose labels must be among those of the training rows).
//
// Numbers whose differences fp32 would lose have an offset subtracted from their column before,
// which the schema of the data set keeps; else it has none. `schema` is that of a model that knows
// its offsets and classes, or null; with one, rows of one class are enough. `task`: see
// TableOptions; labels that are texts are never targets.
Dataset parse_npy_pairs(std::span<const NpyPair> pairs, const std::string& name,
                        const TableSchema* schema = nullptr, TaskKind task = TaskKind::kAuto);

// Two arrays of some rows.
struct ArrayPair {
  NpyArray x, y;
  std::string x_where, y_where;
};
// Reads arrays as parse_npy_pairs() reads those of files. With `borrow` the values of a single pair
// stay where they are, and must outlive the data set, if they need no conversion: uint8, and
// aligned fp32 of which no offsets are to be subtracted, in C order; others are copied all the same
// (Buffer::is_borrowed()).
Dataset dataset_of_arrays(std::span<const ArrayPair> pairs, const std::string& name,
                          const TableSchema* schema = nullptr, bool borrow = false,
                          TaskKind task = TaskKind::kAuto);

Dataset read_npy_pair(const std::string& x_path, const std::string& y_path,
                      const TableSchema* schema = nullptr, TaskKind task = TaskKind::kAuto);

// An archive as numpy.savez and savez_compressed write it, with features and labels in it as X and
// y or under other usual names, or training and test rows as x_train, y_train, x_test and y_test.
Dataset parse_npz(std::string_view bytes, const std::string& where,
                  const TableSchema* schema = nullptr, TaskKind task = TaskKind::kAuto);
Dataset read_npz(const std::string& path, const TableSchema* schema = nullptr,
                 TaskKind task = TaskKind::kAuto);

}  // namespace tritgrad
