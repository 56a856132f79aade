#include "models/recipes/recipe.h"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <tuple>
#include <vector>

#include "engine/text.h"
#include "models/recipes/builtin_recipes.h"
#include "models/recipes/recipe_group.h"
#include "models/recipes/recipe_tables-inl.h"

namespace tritgrad {
namespace {

constexpr Names<GradientPolicy, 2> kGradientPolicies{
    "value", {{{GradientPolicy::kKept, "kept"}, {GradientPolicy::kReleased, "released"}}}};
constexpr Names<FormatKind, 2> kGradientFormats{
    "value", {{{FormatKind::kFp32, "fp32"}, {FormatKind::kBf16, "bf16"}}}};
constexpr Names<NonFinite, 2> kNonFinite{
    "value", {{{NonFinite::kRefuse, "refuse"}, {NonFinite::kSkip, "skip"}}}};
constexpr Names<Compute, 2> kCompute{"value",
                                     {{{Compute::kFp32, "fp32"}, {Compute::kInt8, "int8"}}}};
// The roles that have tables, in the order of Recipe::groups.
constexpr Names<Role, 5> kRoles{"value",
                                {{{Role::kWeight, "weight"},
                                  {Role::kScale, "scale"},
                                  {Role::kBias, "bias"},
                                  {Role::kNorm, "norm"},
                                  {Role::kEmbedding, "embedding"}}}};

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

// Returns the table of a role: [continuous] first, then the role's own on top (weights stand alone;
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

// Returns the groups that follow a table ("weight", "continuous", ...). Whether a model has biases,
// norms or embeddings is not for the recipe to know; scales come with bare trits.
std::vector<const Recipe::Group*> groups_of(std::string_view table, const Recipe& recipe) {
  std::vector<const Recipe::Group*> groups;
  for (const auto& [role, name] : kRoles.names) {
    const bool follows = table == name || (table == "continuous" && role != Role::kWeight);
    if (follows && (role != Role::kScale || recipe.has_trits())) {
      groups.push_back(&recipe.group(role));
    }
  }
  return groups;
}

// A key that nothing reads.
struct IdleKey {
  toml::table* owner;
  toml::key key;
  std::string sentence;  // says so, and what to do
};

// Adds the idle keys of a table which `groups` follow; `place` begins their sentences.
void add_idle_keys(toml::table& table, const std::string& place,
                   const std::vector<const Recipe::Group*>& groups, const Recipe& recipe,
                   std::vector<IdleKey>& idle) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const bool is_head = name == "head_lr";
    const bool is_read =
        is_head ? recipe.head_follows_weight()
                : std::any_of(groups.begin(), groups.end(),
                              [&](const auto* group) { return has_effect(name, *group); });
    if (is_read) continue;
    const std::string reason =
        is_head ? ": a [[group]] trains the head's matrix; set its lr there"
        : groups.empty()
            ? " has no effect: only bare trits have scales, and no weight of this recipe is of "
              "them; leave it out"
            : reason_without_effect(name, *groups.front());
    idle.push_back({&table, key, place + name + reason});
  }
}

std::vector<IdleKey> idle_keys(toml::table& table, const Recipe& recipe) {
  std::vector<IdleKey> idle;
  for (auto&& [section, node] : table) {
    if (section.str() == "gradient_format" && recipe.gradients != GradientPolicy::kKept) {
      idle.push_back({&table, section,
                      "gradient_format is about kept gradients; set gradients = \"kept\" or leave "
                      "it out"});
    }
    if (toml::table* keys = node.as_table()) {
      add_idle_keys(*keys, concat(section.str(), "."), groups_of(section.str(), recipe), recipe,
                    idle);
    }
    if (section.str() != "group") continue;
    for (std::size_t i = 0; i < recipe.named_groups.size(); ++i) {
      const Recipe::NamedGroup& named = recipe.named_groups[i];
      add_idle_keys(*node.as_array()->get_as<toml::table>(i),
                    concat("[[group]] match = \"", named.match, "\": "), {&named.group}, recipe,
                    idle);
    }
  }
  return idle;
}

// Refuses an idle key, a mistake of whoever wrote it. `own` are tables of the recipe, all of which
// one hand has written.
void refuse_without_effect(toml::table own, const Recipe& recipe) {
  const std::vector<IdleKey> idle = idle_keys(own, recipe);
  if (idle.empty()) return;
  fail(recipe.where, line_text(line_of(idle.front().key)), ": ", idle.front().sentence);
}

// Refuses weights whose table leaves out format or rule: they would be dense and trained by AdamW,
// the defaults, which nobody asked for.
void check_weights_complete(const toml::table& table, const Recipe& recipe) {
  const toml::table* weight = table["weight"].as_table();
  for (const char* key : {"format", "rule"}) {
    check(weight != nullptr && weight->contains(key), recipe.where, ": [weight] has no '", key,
          "'; give it one, or begin the file with base = \"votes\" to change a built-in recipe");
  }
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
  recipe.gradients = top.choice("gradients", kGradientPolicies, recipe.gradients);
  recipe.gradient_format = top.choice("gradient_format", kGradientFormats, recipe.gradient_format);
  recipe.clip_grad_norm = top.get("clip_grad_norm", recipe.clip_grad_norm);
  recipe.non_finite = top.choice("non_finite", kNonFinite, recipe.non_finite);
  check_gradients(top, recipe);
  // A recipe for kept gradients may be run with released ones.
  if (recipe.gradients == GradientPolicy::kReleased) recipe.gradient_format = FormatKind::kFp32;
}

// Reads the [[group]] tables, which take the place of their role's for the parameters that match.
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
      named.role = reader.choice("role", kRoles, Role::kWeight);
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

double read_head_lr(TableReader& weight, double lr) {
  const double factor = weight.get("head_lr", 1.0);
  check(factor >= 0.0 && factor < 1e6, weight.at("head_lr"), ": head_lr = ", factor,
        " is outside [0, 1e6); it is a share of lr");
  check(factor * lr < 1e6, weight.at("head_lr"), ": head_lr = ", factor, " times lr = ", lr,
        " must be below 1e6");
  return factor;
}

Recipe recipe_from(const toml::table& table, const std::string& where) {
  Recipe recipe;
  recipe.where = where;
  TableReader top(plain(table), where);
  read_top(top, recipe);
  for (const char* name : {"weight", "continuous", "scale", "bias", "norm", "embedding"}) {
    top.allow(name);
    check(table.get(name) == nullptr || table.get(name)->is_table(), top.at(name), ": '", name,
          "' must be a table, written [", name, "]");
  }
  top.allow("group");
  check(table.get("group") == nullptr || table.get("group")->is_array(), top.at("group"),
        ": 'group' must be tables, written [[group]]");

  for (const auto& [role, name] : kRoles.names) {
    const toml::table merged = role_table(table, role);
    TableReader reader(plain(merged), concat(where, ", [", name, "]"));
    recipe.groups[static_cast<std::size_t>(role)] = read_group(reader, role);
    if (role == Role::kWeight) {
      recipe.head_lr = read_head_lr(reader, recipe.group(role).update.lr);
    }
    reader.refuse_unknown_keys();
  }
  read_named_groups(table, where, recipe);
  const bool ternary = recipe.has_trits();
  recipe.compute = top.choice("compute", kCompute, ternary ? Compute::kInt8 : Compute::kFp32);
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

std::vector<std::string> builtin_names(bool for_language_models) {
  std::vector<std::string> names;
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    if (builtin.for_language_models == for_language_models) names.emplace_back(builtin.name);
  }
  return names;
}

}  // namespace

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
    const bool is_head = parameter.name == kHeadMatrix && parameter.role == Role::kWeight;
    if (is_head && head_follows_weight()) update.lr *= head_lr;
    return update;
  };
}

bool same_settings(const Recipe& a, const Recipe& b) {
  const auto settings = [](const Recipe& recipe) {
    return std::tie(recipe.name, recipe.compute, recipe.gradients, recipe.gradient_format,
                    recipe.clip_grad_norm, recipe.non_finite, recipe.groups, recipe.head_lr,
                    recipe.named_groups);
  };
  return settings(a) == settings(b);
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

std::vector<std::string> recipe_names() { return builtin_names(false); }
std::vector<std::string> language_recipe_names() { return builtin_names(true); }

Recipe load_recipe(const std::string& name_or_file, const std::vector<std::string>& overrides) {
  const RecipeTables tables = read_recipe_tables(name_or_file, overrides);
  if (!tables.own.empty()) {
    refuse_without_effect(tables.own, recipe_from(tables.written, tables.where));
  }
  toml::table table = tables.written;
  merge_into(table, tables.overrides);
  Recipe recipe = recipe_from(table, tables.where);
  refuse_without_effect(tables.overrides, recipe);
  check_weights_complete(table, recipe);
  return recipe;
}

std::string without_idle_keys(const Recipe& recipe) {
  toml::table table = parse_toml(recipe.toml, recipe.where);
  for (const IdleKey& idle : idle_keys(table, recipe)) idle.owner->erase(idle.key);
  std::ostringstream text;
  text << table;
  return text.str();
}

Recipe parse_recipe(const std::string& toml, const std::string& where) {
  return recipe_from(parse_toml(toml, where), where);
}

}  // namespace tritgrad
