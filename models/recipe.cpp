#include "models/recipe.h"

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "models/builtin_recipes.h"
#include "models/recipe_group.h"

namespace tritgrad {
namespace {

Table plain(const toml::table& table) {
  Table values;
  for (const auto& [key, node] : table) {
    TableValue& value = values[std::string(key.str())];
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
    if (const toml::table* table = recipe[name].as_table()) {
      for (const auto& [key, node] : *table) merged.insert_or_assign(key, node);
    }
  };
  if (role != Role::kWeight) add("continuous");
  add(role_name(role));
  return merged;
}

void merge_into(toml::table& base, const toml::table& top) {
  for (const auto& [key, node] : top) {
    toml::table* below = base[key].as_table();
    const toml::table* above = node.as_table();
    if (below != nullptr && above != nullptr) {
      merge_into(*below, *above);
    } else {
      base.insert_or_assign(key, node);
    }
  }
}

// An override that nothing reads is a mistake of whoever gave it.
void refuse_without_effect(const toml::table& override_table, const Recipe& recipe) {
  check(!override_table.contains("gradient_format") || recipe.gradients == GradientPolicy::kKept,
        "recipe '", recipe.name,
        "': gradient_format is about kept gradients; set gradients = \"kept\" or leave it out");
  for (const auto& [section, node] : override_table) {
    const toml::table* keys = node.as_table();
    if (keys == nullptr) continue;
    for (const auto& [key, value] : *keys) {
      bool effect = false;
      for (Role role : {Role::kWeight, Role::kScale, Role::kBias, Role::kNorm}) {
        const bool named = section.str() == role_name(role);
        const bool continuous = section.str() == "continuous" && role != Role::kWeight;
        if (named || continuous) effect |= has_effect(std::string(key.str()), recipe.group(role));
      }
      check(effect, "recipe '", recipe.name, "': ", section.str(), ".", key.str(),
            " has no effect with this format and rule; leave it out");
    }
  }
}

toml::table parse_toml(const std::string& text, const std::string& where) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(where, ", line ", error.source().begin.line, ": not valid TOML: ", error.description());
  }
}

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "recipe file '", path, "' cannot be read; check the path and its permissions");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

toml::table base_table(const std::string& name_or_file) {
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    if (builtin.name == name_or_file) {
      return parse_toml(std::string(builtin.toml), "built-in recipe '" + name_or_file + "'");
    }
  }
  check(name_or_file.ends_with(".toml"), "unknown recipe '", name_or_file, "'",
        did_you_mean(name_or_file, recipe_names()), ", or the path of a .toml file");
  toml::table top = parse_toml(read_text_file(name_or_file), "recipe file '" + name_or_file + "'");
  const auto base = top["base"].value<std::string>();
  if (!base) return top;
  top.erase("base");
  check(!base->ends_with(".toml"), "recipe file '", name_or_file,
        "': base must name a built-in recipe, got '", *base, "'");
  toml::table merged = base_table(*base);
  merge_into(merged, top);
  return merged;
}

// "weight.lr=0.1" is TOML already; "weight.schedule=cosine" wants its quotes.
toml::table parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  check(equals != std::string::npos && equals > 0, "override '", text,
        "' is not of the form key=value, for example weight.lr=0.1");
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return parse_toml(text.substr(0, equals) + "=\"" + text.substr(equals + 1) + "\"",
                      "override '" + text + "'");
  }
}

void check_gradients(const std::string& where, const Recipe& recipe) {
  const bool kept = recipe.gradients == GradientPolicy::kKept;
  check(recipe.clip_grad_norm >= 0.0, where, ": clip_grad_norm = ", recipe.clip_grad_norm,
        " must be at least 0");
  check(recipe.clip_grad_norm == 0.0 || kept, where,
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
  check_gradients(top.where(), recipe);
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
    for (const auto& [key, value] : *own) merged.insert_or_assign(key, value);
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
  TableReader top(plain(table), where);
  read_top(top, recipe);
  for (const char* name : {"weight", "continuous", "scale", "bias", "norm"}) {
    top.allow(name);
    check(table.get(name) == nullptr || table.get(name)->is_table(), where, ": '", name,
          "' must be a table");
  }
  top.allow("group");
  check(table.get("group") == nullptr || table.get("group")->is_array(), where,
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
  check(ternary || recipe.compute == Compute::kFp32, where,
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
  toml::table table = base_table(name_or_file);
  toml::table all_overrides;
  for (const std::string& text : overrides) merge_into(all_overrides, parse_override(text));
  merge_into(table, all_overrides);
  Recipe recipe = recipe_from(table, "recipe '" + name_or_file + "'");
  refuse_without_effect(all_overrides, recipe);
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
