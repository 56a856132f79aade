// The built-in recipes and the bytes that each takes for a parameter.
#pragma once

#include <string>
#include <vector>

#include "models/footprint.h"
#include "models/recipes/recipe.h"

namespace tritgrad {

// The network whose parameters are counted: so wide that its vectors hardly count.
inline constexpr const char* kRecipeExample = "mlp:1024-1024-1024-1024";

struct ListedRecipe {
  Recipe recipe;
  ModelFootprint footprint;  // of kRecipeExample
};
std::vector<ListedRecipe> list_builtin_recipes();

// Returns a JSON array of {"name", "about", "source", "format", "rule", "compute",
// "bytes_per_parameter"}: format and rule are those of the weights, bytes are by category and in
// total.
std::string to_json(const std::vector<ListedRecipe>& recipes);

}  // namespace tritgrad
