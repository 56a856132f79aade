// The text of a recipe as tables: a built-in one or a file, what lies below it and on top of it.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

struct RecipeTables {
  std::string where;      // "recipe 'NAME'", begins messages
  toml::table written;    // the built-in recipe, or the file on top of its base
  toml::table own;        // what the file itself says; empty for a built-in recipe
  toml::table overrides;  // one on top of the other
};

// `name_or_file` and `overrides` as load_recipe() has them. Throws Error that names the recipe, the
// file with its line, or the override.
RecipeTables read_recipe_tables(const std::string& name_or_file,
                                const std::vector<std::string>& overrides);

// Throws Error with the line. Keys remember the line if they come from a file, `path`.
toml::table parse_toml(const std::string& text, const std::string& where,
                       std::string_view path = {});

// Keys of `above` take the place of those below; tables are merged.
void merge_into(toml::table& below, const toml::table& above);

// The line of the file that the key comes from; 0 for built-in recipes and overrides.
int line_of(const toml::key& key);

// ", line 3", or nothing where no line is known.
std::string line_text(int line);

}  // namespace tritgrad
