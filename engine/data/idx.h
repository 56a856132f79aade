// IDX, the format of MNIST: unsigned bytes with a big-endian header; raw or gzip (told by the
// magic).
//
// Images: 00 00 08 03, then count, height, width (32 bits each), then one byte a pixel, row by row.
// Labels: 00 00 08 01, then count, then one byte a label.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"

namespace tritgrad {

struct IdxPair {
  std::string_view images;
  std::string_view labels;
  std::string images_where;  // names of the sources, for messages
  std::string labels_where;
};

// Joins one pair (training rows) or two (training rows, then the published test set). Classes are
// the values that occur among the training labels, in increasing order: those of EMNIST's letters
// are 1 .. 26.
Dataset parse_idx(std::span<const IdxPair> parts, const std::string& name);

// The four files of a folder, under their usual names: train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each raw or with .gz;
// EMNIST's begin with the name of the set and have "test" in place of "t10k".
Dataset read_idx_folder(const std::string& folder, const std::string& name);

// Whether the folder holds the training images under one of these names.
bool has_idx_files(const std::string& folder);

}  // namespace tritgrad
