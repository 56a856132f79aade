// The data sets that are part of the library, so that the main job runs anywhere. Sources and licence:
// engine/data/README.md.
#pragma once

#include <span>
#include <string_view>

namespace tritgrad {

struct BuiltinData {
  std::string_view name;
  std::span<const std::string_view> pieces;  // of one CSV text (compilers limit a literal's length)
};

std::span<const BuiltinData> builtin_data();

}  // namespace tritgrad
