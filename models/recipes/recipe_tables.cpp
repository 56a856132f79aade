#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "engine/check.h"
#include "engine/files/read_file.h"
#include "engine/text.h"
#include "models/recipes/recipe.h"
#include "models/recipes/recipe_tables-inl.h"

namespace tritgrad {
namespace {

// Returns " (did you mean 'votes'?)", or nothing when no built-in recipe has a name like it.
std::string suggestion(const std::string& name) {
  std::vector<std::string> known = recipe_names();
  for (std::string& each : language_recipe_names()) known.push_back(std::move(each));
  const std::string close = nearest(name, known);
  return close.empty() ? "" : " (did you mean '" + close + "'?)";
}

bool is_builtin(const std::string& name) { return !builtin_recipe_text(name).empty(); }

// Returns the name in base = "votes"; empty for a complete recipe, which has none.
std::string base_of(const toml::table& file, const std::string& where) {
  const toml::node* base = file.get("base");
  if (base == nullptr) {
    check(file.contains("name"), where,
          ": it has neither 'base' nor 'name'; begin it with base = \"votes\" to change a built-in "
          "recipe, or give a complete recipe its name");
    return "";
  }
  const std::string place = where + line_text(static_cast<int>(base->source().begin.line));
  const auto name = base->value_exact<std::string>();
  check(name.has_value(), place,
        ": 'base' must be the name of a built-in recipe in quotes, for example base = \"votes\"");
  check(!name->ends_with(".toml"), place, ": base must name a built-in recipe, got '", *name, "'");
  check(is_builtin(*name), place, ": base = '", *name,
        "' is none of the recipes that 'tritgrad recipes' lists", suggestion(*name));
  return *name;
}

// Reads an override: "weight.lr=0.1" is TOML already; "weight.lr=.1" and "5." want a zero, and
// "weight.schedule=cosine" its quotes.
toml::table parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  check(equals != std::string::npos && equals > 0, "override '", text,
        "' is not of the form key=value, for example weight.lr=0.1");
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    const std::string key = text.substr(0, equals + 1);
    std::string value = text.substr(equals + 1);
    const std::optional<double> number = parse_number(value);
    check(!number || std::isfinite(*number), "override '", text, "': ", value,
          " is no finite number; give one that double holds, below 1.8e308");
    const std::size_t point = value.find('.');
    if (point != std::string::npos && number) {
      const auto is_digit = [&](std::size_t i) { return value[i] >= '0' && value[i] <= '9'; };
      if (point + 1 == value.size() || !is_digit(point + 1)) value.insert(point + 1, "0");
      if (point == 0 || !is_digit(point - 1)) value.insert(point, "0");
    } else {
      value = "\"" + value + "\"";
    }
    return parse_toml(key + value, "override '" + text + "'");
  }
}

// Returns a built-in recipe, complete.
toml::table builtin_table(const std::string& name) {
  const std::string where = "built-in recipe '" + name + "'";
  toml::table own = parse_toml(builtin_recipe_text(name), where);
  const std::string base = base_of(own, where);
  if (base.empty()) return own;
  own.erase("base");
  toml::table table = builtin_table(base);
  merge_into(table, own);
  return table;
}

}  // namespace

RecipeTables read_recipe_tables(const std::string& name_or_file,
                                const std::vector<std::string>& overrides) {
  RecipeTables tables;
  tables.where = "recipe '" + name_or_file + "'";
  if (is_builtin(name_or_file)) {
    tables.written = builtin_table(name_or_file);
  } else {
    check(name_or_file.ends_with(".toml"), "unknown recipe '", name_or_file,
          "'; give one that 'tritgrad recipes' lists", suggestion(name_or_file),
          " or the path of a .toml file");
    const std::string where = "recipe file '" + name_or_file + "'";
    tables.own = parse_toml(read_file(name_or_file), where, name_or_file);
    const std::string base = base_of(tables.own, where);
    tables.own.erase("base");
    if (!base.empty()) {
      tables.written = builtin_table(base);
      tables.written.insert_or_assign("name",
                                      as_utf8(std::filesystem::path(name_or_file).stem().string()));
    }
    merge_into(tables.written, tables.own);
  }
  for (const std::string& text : overrides) merge_into(tables.overrides, parse_override(text));
  return tables;
}

int line_of(const toml::key& key) {
  return key.source().path == nullptr ? 0 : static_cast<int>(key.source().begin.line);
}

std::string line_text(int line) { return line == 0 ? "" : ", line " + std::to_string(line); }

toml::table parse_toml(const std::string& text, const std::string& where, std::string_view path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail(where, ", line ", error.source().begin.line, ": not valid TOML: ", error.description());
  }
}

void merge_into(toml::table& below, const toml::table& above) {
  for (const auto& [key, node] : above) {
    toml::table* lower = below[key].as_table();
    const toml::table* upper = node.as_table();
    if (lower != nullptr && upper != nullptr) {
      merge_into(*lower, *upper);
    } else {
      below.erase(key);  // with the line of the key
      below.insert_or_assign(key, node);
    }
  }
}

}  // namespace tritgrad
