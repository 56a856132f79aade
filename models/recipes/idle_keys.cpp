#include "models/recipes/idle_keys.h"

#include <vector>

#include "models/recipes/recipe_group.h"

namespace tritgrad {
namespace {

// Whether a model has biases or norms is not for the recipe to know; scales come with bare trits.
std::vector<Role> roles_of(std::string_view table, const Recipe& recipe) {
  std::vector<Role> roles;
  for (Role role : {Role::kWeight, Role::kScale, Role::kBias, Role::kNorm}) {
    const bool follows =
        table == role_name(role) || (table == "continuous" && role != Role::kWeight);
    if (follows && (role != Role::kScale || recipe.has_trits())) roles.push_back(role);
  }
  return roles;
}

}  // namespace

bool has_effect(std::string_view table, const std::string& key, const Recipe& recipe) {
  if (key == "head_lr") return recipe.head_follows_weight();
  for (Role role : roles_of(table, recipe)) {
    if (has_effect(key, recipe.group(role))) return true;
  }
  return false;
}

std::string reason_without_effect(std::string_view table, const std::string& key,
                                  const Recipe& recipe) {
  const std::vector<Role> roles = roles_of(table, recipe);
  if (roles.empty()) {
    return " has no effect: only bare trits have scales, and no weight of this recipe is of them; "
           "leave it out";
  }
  return reason_without_effect(key, recipe.group(roles.front()));
}

}  // namespace tritgrad
