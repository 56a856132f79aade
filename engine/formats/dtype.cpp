#include "engine/formats/dtype.h"

#include <algorithm>
#include <array>

namespace tritgrad {
namespace {

struct DtypeRow {
  std::string_view name;
  std::size_t bytes;
};

// In the order of enum Dtype.
constexpr std::array<DtypeRow, 13> kDtypes{{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"U16", 2},
                                            {"I16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"U32", 4},
                                            {"I32", 4},
                                            {"F32", 4},
                                            {"U64", 8},
                                            {"I64", 8},
                                            {"F64", 8}}};

}  // namespace

std::string_view dtype_name(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].name; }

std::size_t dtype_bytes(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].bytes; }

std::optional<Dtype> find_dtype(std::string_view name) {
  const auto row = std::find_if(kDtypes.begin(), kDtypes.end(),
                                [&](const DtypeRow& known) { return known.name == name; });
  if (row == kDtypes.end()) return std::nullopt;
  return static_cast<Dtype>(row - kDtypes.begin());
}

}  // namespace tritgrad
