// Pairs of NumPy files: features [n x d] and labels [n].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/dataset.h"

namespace tritgrad {

// An .npy file as doubles. Little-endian numbers of 1 to 8 bytes (b1, i, u, f4, f8), C order.
struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
// `where` begins the messages. Throws Error with what was found and what is supported.
NpyArray parse_npy(std::string_view file, const std::string& where);

// Features must be finite numbers, labels whole numbers or text-free classes such as 0, 1, 2 or -1, 1.
Dataset read_npy_pair(const std::string& features_path, const std::string& labels_path);

}  // namespace tritgrad
