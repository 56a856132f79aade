// The recipes of models/recipes/ and its folder language/, compiled in (the source is generated at
// build time).
#pragma once

#include <span>
#include <string_view>

namespace tritgrad {

struct BuiltinRecipe {
  std::string_view name;
  std::string_view toml;  // may begin with base = "NAME", as a file may
  bool for_language_models;
};

std::span<const BuiltinRecipe> builtin_recipes();

}  // namespace tritgrad
