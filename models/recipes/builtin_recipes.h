// The recipes of models/recipes/, compiled in (the source is generated at build time).
#pragma once

#include <span>
#include <string_view>

namespace tritgrad {

struct BuiltinRecipe {
  std::string_view name;
  std::string_view toml;
};

std::span<const BuiltinRecipe> builtin_recipes();

}  // namespace tritgrad
