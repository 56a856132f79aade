#include "models/recipe.h"

#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/nearest.h"
#include "models/builtin_recipes.h"

namespace tritgrad {
namespace {

// Reads typed values out of one TOML table and refuses keys that nobody asked for.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  template <typename T>
  T get(const char* key, T fallback) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->value<T>();
    check(value.has_value(), where_, ": '", key, "' has the wrong type; expected ", type_name<T>());
    return *value;
  }

  int whole_number(const char* key, int fallback, int highest) {
    const std::int64_t value = get<std::int64_t>(key, fallback);
    check(value >= 0 && value <= highest, where_, ": ", key, " = ", value, " is outside 0..",
          highest);
    return static_cast<int>(value);
  }

  // A string that one of the parse_* functions understands.
  template <typename Parse, typename T>
  T choice(const char* key, Parse parse, T fallback) {
    // group = 32 and group = "32" are the same.
    const toml::node* node = table_.get(key);
    const bool number = node != nullptr && node->is_integer();
    const std::string text =
        number ? std::to_string(get<std::int64_t>(key, 0)) : get<std::string>(key, "");
    if (text.empty()) return fallback;
    try {
      return parse(text);
    } catch (const Error& error) {
      fail(where_, ": '", key, "': ", error.what());
    }
  }

  void allow(const char* key) { known_.insert(key); }

  void refuse_unknown_keys() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      check(known_.contains(name), where_, ": unknown key '", name, "'",
            did_you_mean(name, std::vector<std::string>(known_.begin(), known_.end())));
    }
  }

 private:
  template <typename T>
  static const char* type_name() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::string>) return "a string in quotes";
    return "a number";
  }

  const toml::table& table_;
  std::string where_;
  std::set<std::string> known_;
};

template <typename T>
auto one_of(std::vector<std::pair<std::string, T>> choices) {
  return [choices = std::move(choices)](const std::string& text) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
      names.push_back(name);
    }
    fail("unknown value '", text, "'", did_you_mean(text, names));
  };
}

FormatSpec read_format(TableReader& table, const FormatSpec& fallback) {
  FormatSpec spec = fallback;
  spec.kind = table.choice("format", parse_format, spec.kind);
  spec.rounding = table.choice(
      "rounding",
      one_of<Rounding>({{"nearest", Rounding::kNearest}, {"stochastic", Rounding::kStochastic}}),
      spec.rounding);
  spec.flips.threshold = table.whole_number("threshold", spec.flips.threshold, 126);
  spec.flips.on_flip = table.choice(
      "on_flip", one_of<OnFlip>({{"carry", OnFlip::kCarry}, {"reset", OnFlip::kReset}}),
      spec.flips.on_flip);
  spec.flips.transition = table.choice(
      "transition",
      one_of<Transition>({{"step", Transition::kStepOneTrit}, {"set", Transition::kSetSign}}),
      spec.flips.transition);
  spec.flips.hysteresis = table.whole_number("hysteresis", spec.flips.hysteresis, 126);
  spec.group = table.choice(
      "group", one_of<int>({{"row", 0}, {"32", 32}, {"64", 64}, {"128", 128}}), spec.group);
  return spec;
}

GroupSpec read_update(TableReader& table) {
  GroupSpec update;
  RuleSpec& rule = update.rule;
  rule.kind = table.choice("rule", parse_rule, rule.kind);
  rule.weight_decay = table.get("weight_decay", rule.weight_decay);
  rule.momentum = table.get("momentum", rule.momentum);
  rule.nesterov = table.get("nesterov", rule.nesterov);
  rule.beta1 = table.get("beta1", rule.beta1);
  rule.beta2 = table.get("beta2", rule.beta2);
  rule.eps = table.get("eps", rule.eps);
  rule.normalizer_beta = table.get("normalizer_beta", rule.normalizer_beta);
  update.lr = table.get("lr", update.lr);
  update.lr_relative = table.get("lr_relative", update.lr_relative);
  update.schedule.kind = table.choice("schedule", parse_schedule, update.schedule.kind);
  update.schedule.warmup = table.get("warmup", update.schedule.warmup);
  update.schedule.decay = table.get("decay", update.schedule.decay);
  update.schedule.final = table.get("final", update.schedule.final);
  update.moments.kind = table.choice("moments", parse_format, update.moments.kind);
  return update;
}

void check_group(const std::string& where, Role role, const Recipe::Group& group) {
  check(group.update.lr >= 0.0 && group.update.lr < 1e6, where, ": lr = ", group.update.lr,
        " is outside [0, 1e6)");
  for (double share :
       {group.update.schedule.warmup, group.update.schedule.decay, group.update.schedule.final}) {
    check(share >= 0.0 && share <= 1.0, where,
          ": warmup, decay and final are shares in [0, 1], got ", share);
  }
  check(role == Role::kWeight || !group.format.is_ternary(), where, ": format '",
        format_name(group.format.kind), "' is for weights only; use fp32, bf16 or scale16");
  check(role != Role::kWeight || group.format.kind != FormatKind::kScale16, where,
        ": format 'scale16' holds positive numbers only and is for scales");
  const FormatKind moments = group.update.moments.kind;
  check(moments == FormatKind::kFp32 || moments == FormatKind::kBf16, where, ": moments = '",
        format_name(moments), "' cannot hold moments; use fp32 or bf16");
  const FlipPolicy& flips = group.format.flips;
  check(flips.threshold >= 0 && flips.threshold <= 126, where, ": threshold = ", flips.threshold,
        " is outside 0..126");
  check(flips.hysteresis >= 0 && flips.hysteresis <= flips.threshold, where,
        ": hysteresis = ", flips.hysteresis, " is outside 0..threshold (", flips.threshold, ")");
  make_rule(group.update.rule);
}

// The table of a role: [continuous] first, then the role's own on top (weights stand alone).
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

// Whether the group's format and rule read the key at all.
bool has_effect(const std::string& key, const Recipe::Group& group) {
  const FormatSpec& format = group.format;
  const GroupSpec& update = group.update;
  const bool adamw = update.rule.kind == RuleKind::kAdamw;
  const bool sgd = update.rule.kind == RuleKind::kSgd;
  const bool ternary = format.kind == FormatKind::kTernary;
  if (key == "rounding") {
    return format.wants_scale() || format.kind == FormatKind::kBf16 ||
           format.kind == FormatKind::kInt8 || format.kind == FormatKind::kInt4 ||
           format.kind == FormatKind::kFp8;
  }
  if (key == "threshold" || key == "on_flip" || key == "transition") return ternary;
  if (key == "hysteresis") {
    return format.wants_scale() && format.kind != FormatKind::kTrits &&
           format.flips.on_flip == OnFlip::kCarry;
  }
  if (key == "group") return format.wants_scale();
  if (key == "momentum" || key == "nesterov") return sgd;
  if (key == "beta1" || key == "beta2" || key == "eps") return adamw;
  if (key == "moments") return adamw || (sgd && update.rule.momentum > 0.0);
  if (key == "normalizer_beta") return update.rule.kind == RuleKind::kNormalized;
  if (key == "weight_decay") return update.rule.kind != RuleKind::kNormalized;
  if (key == "decay") return update.schedule.kind == Schedule::Kind::kWarmupStableDecay;
  if (key == "final") return update.schedule.kind != Schedule::Kind::kConstant;
  return true;
}

// An override that nothing reads is a mistake of whoever gave it.
void refuse_without_effect(const toml::table& override_table, const Recipe& recipe) {
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

Recipe recipe_from(const toml::table& table, const std::string& where) {
  Recipe recipe;
  TableReader top(table, where);
  recipe.name = top.get<std::string>("name", "");
  check(!recipe.name.empty(), where, ": 'name' is missing");
  recipe.summary = top.get<std::string>("summary", "");
  recipe.source = top.get<std::string>("source", "");
  recipe.gradients = top.choice("gradients",
                                one_of<GradientPolicy>({{"kept", GradientPolicy::kKept},
                                                        {"released", GradientPolicy::kReleased}}),
                                recipe.gradients);
  recipe.clip_grad_norm = top.get("clip_grad_norm", recipe.clip_grad_norm);
  check(recipe.clip_grad_norm >= 0.0, where, ": clip_grad_norm = ", recipe.clip_grad_norm,
        " must be at least 0");
  check(recipe.clip_grad_norm == 0.0 || recipe.gradients == GradientPolicy::kKept, where,
        ": clip_grad_norm needs all gradients at once; set gradients = \"kept\"");
  for (const char* name : {"weight", "continuous", "scale", "bias", "norm"}) {
    top.allow(name);
    check(table.get(name) == nullptr || table.get(name)->is_table(), where, ": '", name,
          "' must be a table");
  }
  top.refuse_unknown_keys();

  for (Role role : {Role::kWeight, Role::kScale, Role::kBias, Role::kNorm}) {
    const std::string group_where = concat(where, ", [", role_name(role), "]");
    const toml::table merged = role_table(table, role);
    TableReader reader(merged, group_where);
    Recipe::Group& group = recipe.groups[static_cast<std::size_t>(role)];
    FormatSpec fallback;
    if (role == Role::kScale) fallback.kind = FormatKind::kScale16;
    group.format = read_format(reader, fallback);
    group.update = read_update(reader);
    reader.refuse_unknown_keys();
    check_group(group_where, role, group);
  }
  std::ostringstream text;
  text << table;
  recipe.toml = text.str();
  return recipe;
}

}  // namespace

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

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const BuiltinRecipe& builtin : builtin_recipes()) names.emplace_back(builtin.name);
  return names;
}

}  // namespace tritgrad
