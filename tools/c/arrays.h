// Arrays of a caller, as a data set reads them.
#pragma once

#include <cstdint>

#include "engine/data/dataset.h"
#include "engine/data/npy.h"
#include "tools/c/tritgrad.h"

namespace tritgrad {

// Views [rows x features] numbers, floats or bytes, or grey images of one byte a pixel, as a .npy
// file has them.
// Throws Error for NULL, for unknown types, and for sizes that no memory has.
NpyArray view_values(const void* values, tg_type type, std::int64_t rows, std::int64_t features,
                     const ImageShape& image);
// View a whole number, or any number, for each row. Throw Error for NULL, and for labels of a type
// of floats.
NpyArray view_labels(const void* labels, tg_type type, std::int64_t rows);
NpyArray view_targets(const double* targets, std::int64_t rows);

}  // namespace tritgrad
