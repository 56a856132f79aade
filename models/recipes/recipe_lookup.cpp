// Which table of a recipe a parameter follows, and which recipes are built in.
#include <algorithm>

#include "models/recipes/builtin_recipes.h"
#include "models/recipes/recipe.h"

namespace tritgrad {

const Recipe::Group& Recipe::group(std::string_view parameter, Role role) const {
  const Group* found = &group(role);
  for (const NamedGroup& named : named_groups) {
    if (named.role == role && matches(named.match, parameter)) found = &named.group;
  }
  return *found;
}

bool Recipe::head_follows_weight() const {
  return &group(kHeadMatrix, Role::kWeight) == &group(Role::kWeight);
}

bool Recipe::has_trits() const {
  return group(Role::kWeight).format.traits().holds_trits ||
         std::any_of(named_groups.begin(), named_groups.end(), [](const NamedGroup& named) {
           return named.role == Role::kWeight && named.group.format.traits().holds_trits;
         });
}

Optimizer::GroupOf Recipe::updates() const {
  return [this](const ParameterSpec& parameter) {
    GroupSpec update = group(parameter.name, parameter.role).update;
    if (parameter.name == kHeadMatrix && head_follows_weight()) update.lr *= head_lr;
    return update;
  };
}

bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t end = star; end <= name.size(); ++end) {
    if (matches(pattern.substr(star + 1), name.substr(end))) return true;
  }
  return false;
}

std::string builtin_recipe_text(std::string_view name) {
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    if (builtin.name == name) return std::string(builtin.toml);
  }
  return "";
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const BuiltinRecipe& builtin : builtin_recipes()) names.emplace_back(builtin.name);
  return names;
}

}  // namespace tritgrad
