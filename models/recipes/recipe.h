// Recipes: named choices of format, rule and schedule for each role of a parameter.
//
// A recipe is data (TOML), compiled in from models/recipes/ or read from a user's file. Its bytes
// per parameter follow from its formats.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "ops/products/linear.h"
#include "optim/optimizer.h"

namespace tritgrad {

// The last layer of every model, whose outputs are the classes' (or the tokens'), and its matrix.
// As a weight it may have a rate of its own, Recipe::head_lr; that of a language model is an
// embedding.
inline constexpr const char* kHead = "head";
inline constexpr std::string_view kHeadMatrix = "head.weight";
static_assert(kHeadMatrix.starts_with(kHead));

enum class GradientPolicy {
  kKept,      // every gradient has its own memory until the step ends
  kReleased,  // a gradient is used as soon as it is complete, and its memory is used again
};

struct Recipe {
  struct Group {
    FormatSpec format;
    GroupSpec update;
    friend bool operator==(const Group&, const Group&) = default;
  };
  // A table of its own for the parameters of one role whose name matches.
  struct NamedGroup {
    std::string match;  // '*' stands for any characters
    Role role;
    Group group;
    friend bool operator==(const NamedGroup&, const NamedGroup&) = default;
  };

  std::string where;  // begins messages about it: "recipe 'my.toml'"
  std::string name;
  std::string summary;               // one line: what it is and when to use it
  std::string source;                // where the method comes from
  Compute compute = Compute::kFp32;  // of products with bare trits
  GradientPolicy gradients = GradientPolicy::kReleased;
  FormatKind gradient_format = FormatKind::kFp32;  // of kept gradients: fp32 or bf16
  double clip_grad_norm = 0.0;                     // global 2-norm; 0 = off
  NonFinite non_finite = NonFinite::kRefuse;
  std::array<Group, 5> groups;  // by Role: weight, scale, bias, norm, embedding
  double head_lr = 1.0;         // rate of the head's matrix, where [weight] trains it, / lr
  std::vector<NamedGroup> named_groups;  // the last match counts
  std::string toml;                      // the recipe as it was resolved, complete

  const Group& group(Role role) const { return groups.at(static_cast<std::size_t>(role)); }
  const Group& group(std::string_view parameter, Role role) const;
  // Returns whether a head's matrix that is a weight follows [weight], not a group of its own; then
  // head_lr counts.
  bool head_follows_weight() const;
  // Returns whether some weights are bare trits, which alone have scales that are trained.
  bool has_trits() const;
  // Returns how each parameter is trained; the recipe must outlive it.
  Optimizer::GroupOf updates() const;
};

// Whether two recipes have the same name and train alike, however their settings were written.
bool same_settings(const Recipe& a, const Recipe& b);

// Returns whether `name` is `pattern`, in which '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view name);

// Loads a recipe. `name_or_file` is a built-in name, or the path of a .toml file (which may begin
// with base = "NAME", and is then called as the file is unless it has a name of its own).
// `overrides` are "key=value" with dotted keys, such as "weight.lr=0.1" or "clip_grad_norm=1".
// Throws Error that names the key, what was found and what is accepted.
Recipe load_recipe(const std::string& name_or_file, const std::vector<std::string>& overrides = {});
// Returns Recipe::toml without the keys that nothing reads, such as those of a rule that an
// override has replaced; a file may not have them.
std::string without_idle_keys(const Recipe& recipe);
// Reads a recipe from the text that Recipe::toml held (checkpoints).
Recipe parse_recipe(const std::string& toml, const std::string& where);

// Return the names of the built-in recipes, for tables and images and for language models.
std::vector<std::string> recipe_names();
std::vector<std::string> language_recipe_names();
// The ending of the name of a recipe's form for language models.
inline constexpr const char* kForLanguageModels = "-lm";
// Returns the text of a built-in recipe as it was written, with its comments, and perhaps on top of
// a base; empty for other names.
std::string builtin_recipe_text(std::string_view name);

}  // namespace tritgrad
