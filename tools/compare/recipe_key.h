// All that a recipe says, defaults included, as JSON: two recipes of the same name and settings
// have the same, however they are written.
#pragma once

#include <nlohmann/json.hpp>

#include "models/recipes/recipe.h"

namespace tritgrad {

// Recipe::toml holds what was written. What was not, the program decides, and may decide otherwise
// tomorrow: every setting is here, and every schedule also as factors over a run, as its arithmetic
// is not seen by the first steps.
nlohmann::ordered_json recipe_key(const Recipe& recipe);

}  // namespace tritgrad
