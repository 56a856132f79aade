// One table of a recipe: format, rule and schedule of a group of parameters.
#pragma once

#include <string>

#include "models/recipes/recipe.h"
#include "models/recipes/table_reader.h"

namespace tritgrad {

// Reads and checks all keys of a group; throws Error that names the table, the key and what is
// accepted. The caller refuses unknown keys when it has read its own.
Recipe::Group read_group(TableReader& table, Role role);

// Returns whether the group's format and rule read the key at all.
bool has_effect(const std::string& key, const Recipe::Group& group);
// Returns what to say of a key that they do not: " has no effect with ...; leave it out".
std::string reason_without_effect(const std::string& key, const Recipe::Group& group);

}  // namespace tritgrad
