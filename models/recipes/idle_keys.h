// Keys in a table of a recipe that nothing reads.
#pragma once

#include <string>
#include <string_view>

#include "models/recipes/recipe.h"

namespace tritgrad {

// Whether some role that follows the table ("weight", "continuous", ...) reads the key.
bool has_effect(std::string_view table, const std::string& key, const Recipe& recipe);
// What to say of a key that none reads: " has no effect ...; leave it out".
std::string reason_without_effect(std::string_view table, const std::string& key,
                                  const Recipe& recipe);

}  // namespace tritgrad
