// All that a recipe says, defaults included, as JSON: two recipes that train alike have the same.
#pragma once

#include <nlohmann/json.hpp>

#include "models/recipe.h"

namespace tritgrad {

// Recipe::toml holds what was written. What was not, the program decides, and may decide otherwise
// tomorrow: every setting is here, and every schedule as factors over a run, as its arithmetic is
// not seen by the first steps.
nlohmann::ordered_json recipe_key(const Recipe& recipe);

}  // namespace tritgrad
