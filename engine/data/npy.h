// Pairs of NumPy arrays: features x.npy and labels y.npy, as numpy.save writes them.
//
// Supported: format versions 1 to 3, little-endian floats of 4 or 8 bytes, integers of 1, 2, 4 or 8
// bytes, bool; C order. Fortran order, big-endian numbers, objects and records are refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

// A checked view of one array: the payload has exactly the bytes that type and extents demand.
struct NpyArray {
  std::vector<std::int64_t> extents;
  std::string_view payload;
  // Element i in C order. 64-bit integers beyond 2^53 are rounded.
  double (*load)(const char* payload, std::int64_t i);
  bool of_bytes;  // uint8 or bool

  std::int64_t size() const;
};

// `where` names the source in messages.
NpyArray parse_npy(std::string_view bytes, const std::string& where);

// x: [n x d], or [n x height x width] of uint8 for images; uint8 stays one byte. y: [n] or [n x 1],
// integers, or floats that are integers; classes are the distinct values in increasing order.
Dataset parse_npy_pair(std::string_view x, std::string_view y, const std::string& x_where,
                       const std::string& y_where);
Dataset read_npy_pair(const std::string& x_path, const std::string& y_path);

}  // namespace tritgrad
