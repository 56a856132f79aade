// The header of a .npy file: magic, version, and a Python dictionary literal of three keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

struct NpyHeader {
  std::string descr;  // type, as in '<f4'
  bool fortran_order = false;
  std::vector<std::int64_t> extents;
  std::size_t bytes = 0;  // where the values begin
};

// Throws Error, naming `where`, unless the header is complete and well formed.
NpyHeader parse_npy_header(std::string_view bytes, const std::string& where);

}  // namespace tritgrad
