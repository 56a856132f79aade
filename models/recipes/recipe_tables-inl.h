// The TOML tables of a recipe before they are read: a built-in recipe or a file, each perhaps on
// top of a base, and overrides. Not installed: who uses the library need not have TOML.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

struct RecipeTables {
  std::string where;      // "recipe 'NAME'", begins messages
  toml::table written;    // the recipe with its base
  toml::table own;        // what the file itself says; empty for a built-in recipe
  toml::table overrides;  // one on top of the other
};

// Takes what load_recipe() takes (models/recipes/recipe.h), and throws Error as it does.
RecipeTables read_recipe_tables(const std::string& name_or_file,
                                const std::vector<std::string>& overrides);

// Throws Error that begins with `where` for what is no TOML. Keys remember their line if they come
// from a file, `path`.
toml::table parse_toml(const std::string& text, const std::string& where,
                       std::string_view path = {});

// Puts the keys of `above` in the place of those below; tables are merged.
void merge_into(toml::table& below, const toml::table& above);

// Returns the line of the file that the key comes from; 0 for built-in recipes and overrides.
int line_of(const toml::key& key);
// Returns ", line 3", or nothing where no line is known.
std::string line_text(int line);

}  // namespace tritgrad
