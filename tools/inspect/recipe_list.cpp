#include "tools/inspect/recipe_list.h"

#include <nlohmann/json.hpp>

namespace tritgrad {

std::vector<ListedRecipe> list_builtin_recipes() {
  std::vector<ListedRecipe> all;
  for (const auto& names : {recipe_names(), language_recipe_names()}) {
    for (const std::string& name : names) {
      const Recipe recipe = load_recipe(name);
      all.push_back({recipe, forecast_footprint(plan_model(kRecipeExample, 0, 0, recipe), recipe)});
    }
  }
  return all;
}

std::string to_json(const std::vector<ListedRecipe>& recipes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [recipe, footprint] : recipes) {
    const Recipe::Group& weights = recipe.group(Role::kWeight);
    nlohmann::ordered_json bytes;
    for (const auto& [category, count] : named_bytes(footprint.total)) {
      bytes[category] = footprint.per_parameter(count);
    }
    json.push_back({{"name", recipe.name},
                    {"about", recipe.summary},
                    {"source", recipe.source},
                    {"format", format_name(weights.format.kind)},
                    {"rule", rule_name(weights.update.rule.kind)},
                    {"compute", compute_name(recipe.compute)},
                    {"bytes_per_parameter", bytes}});
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tritgrad
