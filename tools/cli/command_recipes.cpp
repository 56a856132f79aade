// tritgrad recipes lists recipes with their bytes per parameter, or shows one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/cli/commands.h"
#include "tools/inspect/recipe_list.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

void list_recipes() {
  Table table({{"recipe"},
               {"weights", Align::kRight, "B/param"},
               {"moments", Align::kRight, "B/param"},
               {"both", Align::kRight, "B/param"},
               {"gradient", Align::kRight, "B/param"},
               {"total", Align::kRight, "B/param"},
               {"what, when, and where it comes from"}});
  for (const ListedRecipe& listed : list_builtin_recipes()) {
    const Recipe& recipe = listed.recipe;
    const ModelFootprint& model = listed.footprint;
    const std::int64_t total = model.total.total();
    const std::int64_t moments = model.total.moments;
    const std::int64_t gradients = model.total.gradients;
    const auto per_parameter = [&](std::int64_t count) {
      return fmt::format("{:.2f}", model.per_parameter(count));
    };
    table.add_row({recipe.name, per_parameter(total - moments - gradients), per_parameter(moments),
                   per_parameter(total - gradients),
                   gradients == 0 ? "released" : per_parameter(gradients), per_parameter(total),
                   recipe.summary});
    table.add_row({"", "", "", "", "", "", "  " + recipe.source});
  }
  fmt::print(
      "{}\nBytes of {}, norms and biases with their moments included. weights: with scales and\n"
      "residual. moments: what the update rule keeps. gradient: kept beside both, or released as "
      "soon\nas it is used; where it is kept, --set gradients=released leaves what 'both' says.\n"
      "'tritgrad recipes show NAME' prints one.\n",
      table.render(), kRecipeExample);
}

}  // namespace

void add_recipes_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("recipes", "list recipes, or show one as TOML");
  command->footer(
      "Examples:\n  tritgrad recipes\n  tritgrad recipes show votes > my.toml\n"
      "  tritgrad train --recipe my.toml");
  command->add_subcommand("list", "all recipes with their bytes per parameter");
  CLI::App* show = command->add_subcommand("show", "one recipe as TOML, to start your own from");
  auto name = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  show->add_option("NAME", *name, "recipe name or FILE.toml")->required();
  show->add_option("--set", *overrides, "KEY=VALUE: override, e.g. weight.lr=0.1");
  command->require_subcommand(0, 1);
  show->callback([name, overrides] {
    const std::string written = overrides->empty() ? builtin_recipe_text(*name) : "";
    fmt::print(
        "{}", written.empty() ? without_idle_keys(load_recipe(*name, *overrides)) + "\n" : written);
  });
  command->callback([show] {
    if (!show->parsed()) list_recipes();
  });
}

}  // namespace tritgrad
