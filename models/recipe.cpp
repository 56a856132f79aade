#include "models/recipe.h"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "models/builtin_recipes.h"
#include "models/recipe_group.h"
#include "models/recipe_tables.h"

namespace tritgrad {
namespace {

Table plain(const toml::table& table) {
  Table values;
  for (const auto& [key, node] : table) {
    TableEntry& entry = values[std::string(key.str())];
    entry.line = line_of(key);
    TableValue& value = entry.value;
    if (const auto text = node.value_exact<std::string>()) value = *text;
    if (const auto whole = node.value_exact<std::int64_t>()) value = *whole;
    if (const auto number = node.value_exact<double>()) value = *number;
    if (const auto flag = node.value_exact<bool>()) value = *flag;
  }
  return values;
}

// The table of a role: [continuous] first, then the role's own on top (weights stand alone;
// kStatistic has no table of its own).
toml::table role_table(const toml::table& recipe, Role role) {
  toml::table merged;
  const auto add = [&](std::string_view name) {
    if (const toml::table* table = recipe[name].as_table()) merge_into(merged, *table);
  };
  if (role != Role::kWeight) add("continuous");
  add(role_name(role));
  return merged;
}

bool has_effect(std::string_view section, const std::string& key, const Recipe& recipe) {
  for (Role role : {Role::kWeight, Role::kScale, Role::kBias, Role::kNorm}) {
    const bool named = section == role_name(role);
    const bool continuous = section == "continuous" && role != Role::kWeight;
    if ((named || continuous) && has_effect(key, recipe.group(role))) return true;
  }
  return false;
}

// A key that nothing reads is a mistake of whoever wrote it. `own`: tables of the recipe, all of
// which one hand has written.
void refuse_without_effect(const toml::table& own, const Recipe& recipe) {
  const auto refuse = [&](const toml::key& key, const std::string& table) {
    fail(recipe.where, line_text(line_of(key)), ": ", table, key.str(),
         " has no effect with this format and rule; leave it out");
  };
  for (const auto& [section, node] : own) {
    check(section.str() != "gradient_format" || recipe.gradients == GradientPolicy::kKept,
          recipe.where, line_text(line_of(section)),
          ": gradient_format is about kept gradients; set gradients = \"kept\" or leave it out");
    if (const toml::table* keys = node.as_table()) {
      for (const auto& [key, value] : *keys) {
        if (has_effect(section.str(), std::string(key.str()), recipe)) continue;
        refuse(key, concat(section.str(), "."));
      }
    }
    if (section.str() != "group") continue;
    for (std::size_t i = 0; i < recipe.named_groups.size(); ++i) {
      const Recipe::NamedGroup& named = recipe.named_groups[i];
      for (const auto& [key, value] : *node.as_array()->get_as<toml::table>(i)) {
        if (has_effect(std::string(key.str()), named.group)) continue;
        refuse(key, "[[group]] match = \"" + named.match + "\": ");
      }
    }
  }
}

// Weights of a group would be dense and trained by AdamW, the defaults, where [weight] says
// something else.
void check_groups_complete(const toml::table& table, const Recipe& recipe) {
  for (std::size_t i = 0; i < recipe.named_groups.size(); ++i) {
    const Recipe::NamedGroup& named = recipe.named_groups[i];
    const toml::table& own = *table["group"].as_array()->get_as<toml::table>(i);
    for (const char* key : {"format", "rule"}) {
      check(named.role != Role::kWeight || own.contains(key), recipe.where,
            line_text(line_of(own.find("match")->first)), ": [[group]] match = \"", named.match,
            "\": '", key,
            "' is missing; a group of weights takes nothing from [weight] and needs a format and a "
            "rule of its own");
    }
  }
}

void check_gradients(const TableReader& top, const Recipe& recipe) {
  const bool kept = recipe.gradients == GradientPolicy::kKept;
  const std::string place = top.at("clip_grad_norm");
  check(recipe.clip_grad_norm >= 0.0, place, ": clip_grad_norm = ", recipe.clip_grad_norm,
        " must be at least 0");
  check(recipe.clip_grad_norm == 0.0 || kept, place,
        ": clip_grad_norm needs all gradients at once; set gradients = \"kept\"");
}

void read_top(TableReader& top, Recipe& recipe) {
  recipe.name = top.get<std::string>("name", "");
  check(!recipe.name.empty(), top.where(), ": 'name' is missing");
  recipe.summary = top.get<std::string>("summary", "");
  recipe.source = top.get<std::string>("source", "");
  recipe.gradients = top.choice("gradients",
                                one_of<GradientPolicy>({{"kept", GradientPolicy::kKept},
                                                        {"released", GradientPolicy::kReleased}}),
                                recipe.gradients);
  recipe.gradient_format =
      top.choice("gradient_format",
                 one_of<FormatKind>({{"fp32", FormatKind::kFp32}, {"bf16", FormatKind::kBf16}}),
                 recipe.gradient_format);
  recipe.clip_grad_norm = top.get("clip_grad_norm", recipe.clip_grad_norm);
  recipe.non_finite = top.choice(
      "non_finite", one_of<NonFinite>({{"refuse", NonFinite::kRefuse}, {"skip", NonFinite::kSkip}}),
      recipe.non_finite);
  check_gradients(top, recipe);
  // A recipe for kept gradients may be run with released ones.
  if (recipe.gradients == GradientPolicy::kReleased) recipe.gradient_format = FormatKind::kFp32;
}

// [[group]]: tables that take the place of their role's for the parameters that match.
void read_named_groups(const toml::table& table, const std::string& where, Recipe& recipe) {
  const toml::array* array = table["group"].as_array();
  if (array == nullptr) return;
  for (const toml::node& node : *array) {
    const toml::table* own = node.as_table();
    check(own != nullptr, where, ": 'group' must be tables, written [[group]]");
    toml::table merged;
    Recipe::NamedGroup named;
    {
      TableReader reader(plain(*own), where + ", [[group]]");
      named.match = reader.get<std::string>("match", "");
      check(!named.match.empty(), where,
            ", [[group]]: 'match' is missing; it names parameters, for example \"head.*\"");
      named.role = reader.choice("role",
                                 one_of<Role>({{"weight", Role::kWeight},
                                               {"scale", Role::kScale},
                                               {"bias", Role::kBias},
                                               {"norm", Role::kNorm}}),
                                 Role::kWeight);
    }
    if (named.role != Role::kWeight) merged = role_table(table, Role::kStatistic);
    merge_into(merged, *own);
    TableReader reader(plain(merged), concat(where, ", [[group]] match = \"", named.match, "\""));
    reader.allow("match");
    reader.allow("role");
    named.group = read_group(reader, named.role);
    reader.refuse_unknown_keys();
    recipe.named_groups.push_back(std::move(named));
  }
}

bool has_trits(const Recipe& recipe) {
  const auto& named = recipe.named_groups;
  return recipe.group(Role::kWeight).format.wants_scale() ||
         std::any_of(named.begin(), named.end(), [](const Recipe::NamedGroup& group) {
           return group.role == Role::kWeight && group.group.format.wants_scale();
         });
}

Recipe recipe_from(const toml::table& table, const std::string& where) {
  Recipe recipe;
  recipe.where = where;
  TableReader top(plain(table), where);
  read_top(top, recipe);
  for (const char* name : {"weight", "continuous", "scale", "bias", "norm"}) {
    top.allow(name);
    check(table.get(name) == nullptr || table.get(name)->is_table(), top.at(name), ": '", name,
          "' must be a table, written [", name, "]");
  }
  top.allow("group");
  check(table.get("group") == nullptr || table.get("group")->is_array(), top.at("group"),
        ": 'group' must be tables, written [[group]]");

  for (Role role : {Role::kWeight, Role::kScale, Role::kBias, Role::kNorm}) {
    const toml::table merged = role_table(table, role);
    TableReader reader(plain(merged), concat(where, ", [", role_name(role), "]"));
    recipe.groups[static_cast<std::size_t>(role)] = read_group(reader, role);
    reader.refuse_unknown_keys();
  }
  read_named_groups(table, where, recipe);
  const bool ternary = has_trits(recipe);
  recipe.compute =
      top.choice("compute", one_of<Compute>({{"fp32", Compute::kFp32}, {"int8", Compute::kInt8}}),
                 ternary ? Compute::kInt8 : Compute::kFp32);
  check(ternary || recipe.compute == Compute::kFp32, top.at("compute"),
        ": compute = \"int8\" is for weights of bare trits, and no weight of this recipe has any; "
        "leave it out");
  top.refuse_unknown_keys();
  toml::table resolved = table;
  resolved.insert_or_assign("compute", compute_name(recipe.compute));
  std::ostringstream text;
  text << resolved;
  recipe.toml = text.str();
  return recipe;
}

}  // namespace

const Recipe::Group& Recipe::group(std::string_view parameter, Role role) const {
  const Group* found = &group(role);
  for (const NamedGroup& named : named_groups) {
    if (named.role == role && matches(named.match, parameter)) found = &named.group;
  }
  return *found;
}

Optimizer::GroupOf Recipe::updates() const {
  return [this](const ParameterSpec& parameter) {
    return group(parameter.name, parameter.role).update;
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

Recipe load_recipe(const std::string& name_or_file, const std::vector<std::string>& overrides) {
  const RecipeTables tables = read_recipe_tables(name_or_file, overrides);
  if (!tables.own.empty()) {
    refuse_without_effect(tables.own, recipe_from(tables.written, tables.where));
  }
  toml::table table = tables.written;
  merge_into(table, tables.overrides);
  Recipe recipe = recipe_from(table, tables.where);
  refuse_without_effect(tables.overrides, recipe);
  check_groups_complete(table, recipe);
  return recipe;
}

Recipe parse_recipe(const std::string& toml, const std::string& where) {
  return recipe_from(parse_toml(toml, where), where);
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
